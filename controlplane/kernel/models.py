"""The abstract base of every table. No tables of its own."""

from django.db import models

from controlplane.kernel.ids import uuid7


class Row(models.Model):
    """A row with a server-made, time-ordered id."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)

    class Meta:
        abstract = True
