"""By what a database is told from a copy of it that was put back."""

from django.db import models


class Imprint(models.Model):
    """One row, which a migration wrote and nobody ever changes. The transaction that wrote it
    (`xmin`) stays the same when the table is rewritten, by VACUUM FULL say; where the row is put
    back from a backup, by whatever means, it is another (`services.restoring`)."""

    def __str__(self) -> str:
        return "imprint"
