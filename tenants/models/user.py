"""A person who signs in. What they may do comes from Member rows, never from flags here."""

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Lower

from controlplane.kernel.ids import uuid7

_READING = Func(Lower(F("username")), Value("01i_-"), Value("oll"), function="translate")


class User(AbstractUser):
    """`is_staff` opens the back office for reading; it grants nothing in the portal or the API.

    A username is ASCII, and reads like no other: owners give roles by it. Berth's own, which
    nobody signs in by, have a colon.
    """

    READING = _READING
    """What `tenants.naming.reading` makes of a username."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[ASCIIUsernameValidator()],
        help_text="Up to 150 of A-Z, a-z, 0-9 and @ . + - _",
        error_messages={"unique": "There is a user of that name already."},
    )

    left_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Since when the groups of their provider give them nothing: what closed the account, which
    their return opens again. Null where nothing or somebody closed it."""

    is_break_glass = models.BooleanField(default=False, db_default=False, editable=False)
    """Of one at most: who signs in by a password whatever the policy is."""

    class Meta(AbstractUser.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["is_break_glass"],
                condition=Q(is_break_glass=True),
                name="user_one_break_glass",
            ),
            models.CheckConstraint(
                condition=Q(left_at__isnull=True) | Q(is_active=False),
                name="user_who_left_is_not_active",
            ),
            models.CheckConstraint(
                condition=Q(username__regex=r"^[A-Za-z0-9_.@+:-]+$"),
                name="user_name_ascii",
                violation_error_message="A username has only A-Z, a-z, 0-9 and @ . + - _",
            ),
            models.UniqueConstraint(
                _READING,
                name="user_name_reads_once",
                violation_error_message="It reads like the name of another user: take another.",
            ),
        ]
