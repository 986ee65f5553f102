"""Which groups of a sign-in provider have which roles."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant

MAX_GROUP = 255


class Role(models.TextChoices):
    OWNER = "owner"
    APPROVER = "approver"
    OPERATOR = "operator"
    MEMBER = "member"
    VIEWER = "viewer"


class GroupRole(Row):
    """Whom `provider` tells to be in `group` has the role at one scope and below it, from their
    next sign-in on; `made_by` themself has nothing of it. `givers` are through whom
    they could make it, as `Member` says of a role. Neither tenant nor project: the whole
    fleet. A row never changes."""

    provider = models.CharField(max_length=20)
    group = models.CharField(max_length=MAX_GROUP)
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.CASCADE, related_name="group_roles"
    )
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="group_roles"
    )
    role = models.CharField(max_length=10, choices=Role)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    made_at = models.DateTimeField()
    givers = ArrayField(models.UUIDField(), default=list, db_default=[], blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(project__isnull=True),
                name="group_role_of_one_scope",
            ),
            models.CheckConstraint(
                condition=Q(role__in=Role.values), name="group_role_role_known"
            ),
            models.CheckConstraint(
                condition=~Q(group="") & ~Q(provider=""), name="group_role_names_a_group"
            ),
            models.UniqueConstraint(
                fields=["provider", "group", "tenant", "project", "role"],
                nulls_distinct=False,
                name="group_role_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} of {self.provider}: {self.role}"
