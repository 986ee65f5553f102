"""A person who signs in. What they may do comes from Member rows, never from flags here."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from controlplane.kernel.ids import uuid7


class User(AbstractUser):
    """`is_staff` opens the back office for reading; it grants nothing in the portal or the API."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
