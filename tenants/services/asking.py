"""Asking for quota of several flavors at once: all of them or none, and a request for each, which
is then decided for itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from clusters.models import Flavor
from controlplane.kernel.errors import Invalid
from controlplane.kernel.ids import uuid7
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, QuotaRequest
from tenants.services import asking_bounds, requests
from tenants.services.grants import Allotment
from tenants.services.requests import Part

MOST = 20
"""Flavors of one submission."""


@dataclass(frozen=True, slots=True)
class Line:
    """One of them, and what its nominal quota should become."""

    flavor: Flavor
    allotment: Allotment


def open_all(
    *, actor: Actor, project: Project, lines: Sequence[Line], reason: str, at: datetime
) -> list[QuotaRequest]:
    """A request for each of the lines, in one transaction.

    Raises as `requests.open`, with the line at fault in the pointer; Invalid also for no line or
    too many, and for a flavor that stands in two of them.
    """
    access.authorize(actor, Action.REQUEST_QUOTA, project=project)
    if not 1 <= len(lines) <= MOST:
        raise Invalid(f"Ask for 1 to {MOST} flavors.", pointer="/lines", code="out-of-range")
    first: dict[Flavor, int] = {}
    for number, line in enumerate(lines):
        earlier = first.setdefault(line.flavor, number)
        if earlier != number:
            raise Invalid(
                f"Line {earlier + 1} asks for {line.flavor.name} already.",
                pointer=f"/lines/{number}/flavor",
                code="repeated",
            )
    together = uuid7() if len(lines) > 1 else None
    with transaction.atomic():
        asking_bounds.check(actor=actor, project=project, at=at, count=len(lines))
        return [
            requests.open(
                actor=actor, project=project, flavor=line.flavor, allotment=line.allotment,
                reason=reason, at=at, part=Part(together=together, pointer=f"/lines/{number}"),
            )
            for number, line in enumerate(lines)
        ]  # fmt: skip
