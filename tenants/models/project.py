"""The project: a tenant's unit that owns a queue, quota and spend."""

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from tenants.models.tenant import Tenant


class Project(Row):
    """`namespace` is server-made and the same in each cluster."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=40)
    namespace = models.CharField(max_length=63, unique=True)
    weight = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "slug"], name="project_slug_once_a_tenant"),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=1000), name="project_weight_in_range"
            ),
            models.CheckConstraint(
                condition=Q(namespace__regex=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"),
                name="project_namespace_plain",
            ),
        ]

    @property
    def full_name(self) -> str:
        """With its tenant's, for where those of several stand together."""
        return f"{self.tenant.name} / {self.name}"

    def __str__(self) -> str:
        return self.name
