"""Reading which flavors projects prefer. Who may see a project may see these."""

from collections.abc import Collection
from uuid import UUID

from clusters.models import Flavor, FlavorKind
from tenants.models import PreferredFlavor, Project

CHOSEN = (FlavorKind.WHOLE, FlavorKind.SHARE, FlavorKind.CPU)
"""What work can ask for without naming it, and so what may be preferred: a slice is of a profile
that has to be named, and a quota over a model is nothing to run on."""


def of_project(project: Project) -> list[Flavor]:
    """In order. One query."""
    rows = PreferredFlavor.objects.filter(project=project).select_related("flavor")
    return [row.flavor for row in rows.order_by("position")]


def by_project(projects: Collection[UUID]) -> dict[UUID, list[UUID]]:
    """The ids of those that each prefers, in order; [] for none. One query."""
    found: dict[UUID, list[UUID]] = {id: [] for id in projects}
    rows = PreferredFlavor.objects.filter(project_id__in=projects).order_by("position")
    for project, flavor in rows.values_list("project_id", "flavor_id"):
        found[project].append(flavor)
    return found


def choices() -> list[Flavor]:
    """Those that a project may prefer, by name. One query."""
    return list(Flavor.objects.filter(kind__in=CHOSEN).order_by("name"))
