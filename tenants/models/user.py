"""A person who signs in, or a service account, which is no person and never does. What they may do
comes from Member rows, never from flags here."""

from typing import TYPE_CHECKING

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Lower, Replace

from controlplane.kernel.ids import uuid7
from tenants.models.notice import OF_WORK, Event

if TYPE_CHECKING:
    from tenants.models.project import Project
    from tenants.models.tenant import Tenant

SERVICE = "service:"
"""How the name of every service account begins, and of nobody else."""
_READING = Replace(
    Func(Lower(F("username")), Value("01i_-"), Value("oll"), function="translate"),
    Value("rn"),
    Value("m"),
)

_IS_PERSON = Q(service_tenant__isnull=True, service_project__isnull=True)


def mailed_of_at_first() -> list[str]:
    """What nobody expects of their work, and no more, in the order of OF_WORK."""
    return [Event.WORK_IDLE.value, Event.WORK_STOPPED.value]


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

    mailed_of = ArrayField(
        models.CharField(max_length=20, choices=[(each.value, each.label) for each in OF_WORK]),
        default=mailed_of_at_first, db_default=mailed_of_at_first(),
        blank=True, editable=False,
    )  # fmt: skip
    """Of which events of their own work they are told by mail."""

    is_break_glass = models.BooleanField(default=False, db_default=False, editable=False)
    """Of one at most: who signs in by a password whatever the policy is."""

    service_tenant = models.ForeignKey(
        "tenants.Tenant", null=True, blank=True, editable=False, on_delete=models.PROTECT,
        related_name="service_accounts",
    )  # fmt: skip
    service_project = models.ForeignKey(
        "tenants.Project", null=True, blank=True, editable=False, on_delete=models.PROTECT,
        related_name="service_accounts",
    )  # fmt: skip
    """Of which place it is a service account, one of the two; both null is a person, or Berth's
    own."""

    @property
    def is_service(self) -> bool:
        return self.service_tenant_id is not None or self.service_project_id is not None

    @property
    def service_place(self) -> "Project | Tenant | None":
        return self.service_project or self.service_tenant

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(service_tenant__isnull=True) | Q(service_project__isnull=True),
                name="user_serves_one_place",
            ),
            models.CheckConstraint(
                condition=Q(_IS_PERSON, ~Q(username__startswith=SERVICE))
                | Q(~_IS_PERSON, username__startswith=SERVICE),
                name="user_called_what_it_is",
                violation_error_message="Only service accounts are called so.",
            ),
            models.CheckConstraint(
                condition=_IS_PERSON
                | Q(
                    password__startswith=UNUSABLE_PASSWORD_PREFIX,
                    email="",
                    is_staff=False,
                    is_superuser=False,
                    is_break_glass=False,
                ),
                name="user_who_serves_never_signs_in",
            ),
            models.UniqueConstraint(
                fields=["is_break_glass"],
                condition=Q(is_break_glass=True),
                name="user_one_break_glass",
            ),
            models.CheckConstraint(
                condition=Q(mailed_of__contained_by=[each.value for each in OF_WORK]),
                name="user_mailed_of_own_work",
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
