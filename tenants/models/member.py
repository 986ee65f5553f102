"""Roles of users in the fleet, a tenant or a project."""

from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from controlplane.kernel.models import Row
from tenants.models.group_role import GroupRole, Role
from tenants.models.project import Project
from tenants.models.tenant import Tenant


class Member(Row):
    """A role at one scope, and at everything below it. Neither tenant nor project: the whole
    fleet.

    `givers` says through whom it came about: who gave it, who had given them the role by which
    they could, and so on, up to one whom nobody of these made. It is empty where the installation
    began. `group_role` says by which group it came, and is null where somebody gave it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.CASCADE, related_name="members"
    )
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="members"
    )
    role = models.CharField(max_length=10, choices=Role)
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="roles_given",
    )
    granted_at = models.DateTimeField(null=True, blank=True)
    givers = ArrayField(models.UUIDField(), default=list, db_default=[], blank=True)
    group_role = models.ForeignKey(
        GroupRole, null=True, blank=True, on_delete=models.CASCADE, related_name="members"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(project__isnull=True),
                name="member_of_one_scope",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="member_role_known"),
            models.UniqueConstraint(
                fields=["user", "tenant", "project", "role", "group_role"],
                nulls_distinct=False,
                name="member_role_once",
            ),
            models.CheckConstraint(
                condition=Q(granted_by__isnull=True, givers=[])
                | Q(
                    granted_by__isnull=False,
                    granted_at__isnull=False,
                    givers__len__gte=1,
                    givers__0=F("granted_by"),
                ),
                name="member_givers_whole",
            ),
        ]

    def came_through(self, user_id: UUID | None) -> bool:
        """Whether they gave it, or made somebody who did."""
        return user_id in self.givers

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"
