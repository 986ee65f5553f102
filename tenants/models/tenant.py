"""The tenant tree: organisation > department. Projects hang below."""

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row


class Tenant(Row):
    """An organisation (no parent) or a department of one. A trigger refuses cycles.

    `weight` is its part in fair share among its siblings.
    """

    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="departments"
    )
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=40, unique=True)
    weight = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=1000), name="tenant_weight_in_range"
            ),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=models.F("id")),
                name="tenant_not_its_own_parent",
            ),
        ]

    def __str__(self) -> str:
        return self.name
