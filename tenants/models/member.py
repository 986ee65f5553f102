"""Roles of users in the fleet, a tenant or a project."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.project import Project
from tenants.models.tenant import Tenant


class Role(models.TextChoices):
    OWNER = "owner"
    APPROVER = "approver"
    OPERATOR = "operator"
    MEMBER = "member"
    VIEWER = "viewer"


class Member(Row):
    """A role at one scope, and at everything below it. Neither tenant nor project: the whole
    fleet."""

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

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(project__isnull=True),
                name="member_of_one_scope",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="member_role_known"),
            models.UniqueConstraint(
                fields=["user", "tenant", "project", "role"],
                nulls_distinct=False,
                name="member_role_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"
