"""How often somebody tried to sign in."""

from django.db import models


class SignInTally(models.Model):
    """`count` tries since `since`, by one name, from one address, or both: `key` is a keyed hash
    of it, as people type passwords for names."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.IntegerField()
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
