"""Saying which flavors a project prefers, as its owners: it changes the order in which its own
quotas are used, and no quota."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from clusters.models import Flavor, FlavorKind
from controlplane.kernel import bulk, hints
from controlplane.kernel.errors import Invalid, Problem
from controlplane.kernel.ids import uuid7s
from tenants import access
from tenants.access import Action, Actor
from tenants.models import MAX_PREFERRED, PreferredFlavor, Project
from tenants.selectors import preferred as selectors
from tenants.services import columns, trail


def set_for_project(
    *, actor: Actor, project: Project, names: Sequence[str], at: datetime
) -> list[str]:
    """Prefer these from now on, in this order, and no others; the names. () is none.

    What runs keeps what it accepts, and what waits without naming flavors does where none of these
    goes with it. Other work goes by them soon.

    Raises NotFound or NotAllowed for the project; Invalid, with each name at fault, for a flavor
    that is unknown, named again, or such as has to be named.
    """
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    flavors = {flavor.name: flavor for flavor in Flavor.objects.filter(name__in=names)}
    if found := _problems(names, flavors):
        raise Invalid(f"{found[0].pointer}: {found[0].message}", problems=tuple(found))
    with transaction.atomic():
        row = Project.objects.select_for_update(no_key=True).get(id=project.id)
        before = [flavor.name for flavor in selectors.of_project(row)]
        if before != list(names):
            PreferredFlavor.objects.filter(project=row).delete()
            bulk.insert(
                PreferredFlavor,
                id=uuid7s(len(names)),
                project_id=row.id,
                flavor_id=[flavors[name].id for name in names],
                position=list(range(len(names))),
            )
            entry = columns.entry(
                row,
                action="project.preferred-flavors",
                before={"preferred_flavors": before},
                after={"preferred_flavors": list(names)},
            )
            trail.record(entry, actor=actor, at=at)
            hints.hint(hints.WISHES)
    return list(names)


def _problems(names: Sequence[str], flavors: Mapping[str, Flavor]) -> list[Problem]:
    found = []
    if len(names) > MAX_PREFERRED:
        message = f"{len(names)} flavors are too many; at most {MAX_PREFERRED}."
        return [Problem(pointer="/preferred_flavors", code="invalid", message=message)]
    for index, name in enumerate(names):
        if fault := _fault(name, names[:index], flavors.get(name)):
            code, message = fault
            pointer = f"/preferred_flavors/{index}"
            found.append(Problem(pointer=pointer, code=code, message=message))
    return found


def _fault(name: str, before: Sequence[str], flavor: Flavor | None) -> tuple[str, str] | None:
    if flavor is None:
        known = ", ".join(each.name for each in selectors.choices())
        return "unknown-flavor", f"There is no flavor {name!r}; known: {known}."
    if name in before:
        return "repeated", f"{name} is named before: each has one place."
    if flavor.kind == FlavorKind.MIG:
        return (
            "wrong-flavor",
            f"{name} is a slice, which work has to name: prefer whole GPUs, shares or CPU.",
        )
    if flavor.kind == FlavorKind.MODEL:
        return "wrong-flavor", f"{name} is a quota over all of {flavor.model}: prefer its parts."
    return None
