"""Which flavors a project prefers: those that its work tries first."""

from django.db import models
from django.db.models import Q

from clusters.models import Flavor
from controlplane.kernel.models import Row
from tenants.models.project import Project

MAX_PREFERRED = 16
"""Flavors that one project prefers: as many as a pod set may name."""


class PreferredFlavor(Row):
    """A flavor that work of the project tries before those at a later `position`, and these before
    all that it does not prefer. Work that says neither flavors nor what they have gets no others.
    """

    project = models.ForeignKey(
        Project,
        on_delete=models.CASCADE,
        related_name="preferred",
        db_index=False,  # preferred_position_once begins with it
    )
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "position"], name="preferred_position_once"
            ),
            models.UniqueConstraint(fields=["project", "flavor"], name="preferred_flavor_once"),
            models.CheckConstraint(
                condition=Q(position__lt=MAX_PREFERRED), name="preferred_position_in_range"
            ),
        ]

    access_path = "project"

    def __str__(self) -> str:
        return f"{self.position} {self.flavor_id}"
