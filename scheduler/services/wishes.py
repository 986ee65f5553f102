"""Which flavors a pod set accepts without naming them: those that have what it wishes of a device,
or, where it says neither, those that its project prefers. Found when it is submitted, and again
when flavors, prices or what is preferred have changed, so that what waits may use what came later
(ADRs 0039 and 0064)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F

from clusters.models import Flavor, FlavorKind
from clusters.origin import CapacityType
from controlplane.kernel import bulk, hints
from controlplane.kernel.errors import Problem
from controlplane.kernel.ids import uuid7s
from scheduler.core.lifecycle import State
from scheduler.models import PodSetFlavor, Workload
from scheduler.services.specs import PodSetSpec, WishSpec, WorkloadSpec, kind_asked
from tenants.models import Project
from tenants.selectors import preferred, prices

MIB_A_GIB = 1024
KINDS: Mapping[FlavorKind, str] = {
    FlavorKind.WHOLE: "whole GPUs",
    FlavorKind.SHARE: "shares of a GPU",
    FlavorKind.CPU: "CPU cores",
}
"""What pods ask for that name no flavor, in words."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """All flavors, the lowest price of each in any cluster, and what projects prefer, in order."""

    flavors: Sequence[Flavor]
    cheapest: Mapping[UUID, Decimal]
    preferred: Mapping[UUID, Sequence[UUID]]

    def having(self, wish: WishSpec, *, project: UUID) -> list[Flavor]:
        """Whole devices that have it: first those that the project prefers, in its order, then the
        smallest, then the cheapest, those without a price last, then by name. Spot is for who
        names it, or whose project prefers it: what may be taken away is nobody's by default.

        In whole GiB, for models of one size report a few MiB more or less: 81,559 and 81,920.
        """
        order = self.preferred[project]

        def key(flavor: Flavor) -> tuple[int, int, Decimal, str]:
            place = order.index(flavor.id) if flavor.id in order else len(order)
            price = self.cheapest.get(flavor.id, Decimal("Infinity"))
            return place, -(-flavor.memory_mib // MIB_A_GIB), price, flavor.name

        return sorted(
            (
                flavor
                for flavor in self.flavors
                if flavor.kind == FlavorKind.WHOLE
                and flavor.memory_mib >= wish.least_memory_mib
                and (not wish.vendors or flavor.vendor in wish.vendors)
                and (flavor.capacity != CapacityType.SPOT or flavor.id in order)
            ),
            key=key,
        )

    def preferred_of(self, kind: str, *, project: UUID) -> list[Flavor]:
        """Those of the kind that the project prefers, in its order."""
        known = {flavor.id: flavor for flavor in self.flavors}
        mine = (known.get(id) for id in self.preferred[project])  # one may be newer than flavors
        return [flavor for flavor in mine if flavor is not None and flavor.kind == kind]


def widened(
    *, project: Project, specs: Sequence[WorkloadSpec], at: datetime
) -> Sequence[WorkloadSpec]:
    """The specs with `wished`, at the prices of the moment. No query when all is named."""
    if not any(_is_unnamed(pod_set) for spec in specs for pod_set in spec.pod_sets):
        return specs
    shelf = _shelf([project.id], at)

    def found(pod_set: PodSetSpec) -> tuple[str, ...]:
        if pod_set.wish is None:
            flavors = shelf.preferred_of(pod_set.kind, project=project.id)
        else:
            flavors = shelf.having(pod_set.wish, project=project.id)
        return tuple(each.name for each in flavors if each.name not in pod_set.flavors)

    return [
        replace(
            spec,
            pod_sets=tuple(
                replace(pod_set, wished=found(pod_set)) if _is_unnamed(pod_set) else pod_set
                for pod_set in spec.pod_sets
            ),
        )
        for spec in specs
    ]


def problems(*, project: Project, specs: Sequence[WorkloadSpec]) -> list[Problem]:
    """One for each pod set that would accept no flavor: it names none, and none has what it wishes
    or, without a wish, is preferred. Pointers begin with the spec's index. No query without such.
    """
    in_vain = [
        (f"/{index}/pod_sets/{position}", pod_set)
        for index, spec in enumerate(specs)
        for position, pod_set in enumerate(spec.pod_sets)
        if not pod_set.accepted
    ]
    if not in_vain:
        return []
    whole = list(Flavor.objects.filter(kind=FlavorKind.WHOLE))
    first = [flavor.name for flavor in preferred.of_project(project)]
    return [
        Problem(pointer=f"{pointer}/flavors", code="required", message=_why_named(pod_set, first))
        if pod_set.wish is None
        else Problem(
            pointer=f"{pointer}/wish",
            code="no-such-device",
            message=_why_none(pod_set.wish, whole),
        )
        for pointer, pod_set in in_vain
    ]


# Of work that has not ended: pod sets that wish, and accept, the same; and such that wait and go
# by what their project prefers.
_UNNAMED = """
SELECT w.project_id, s.as_preferred, s.least_memory_mib, s.vendors, s.gpu_count, s.gpu_milli,
       s.gpu_memory_mib, f.named, f.wished, array_agg(s.id ORDER BY s.id),
       array_agg(s.workload_id ORDER BY s.id)
FROM scheduler_podset s JOIN scheduler_workload w ON w.id = s.workload_id
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(flavor_id ORDER BY position) FILTER (WHERE NOT wished), '{}') named,
           coalesce(array_agg(flavor_id ORDER BY position) FILTER (WHERE wished), '{}') wished
    FROM scheduler_podsetflavor WHERE pod_set_id = s.id) f
WHERE (s.least_memory_mib IS NOT NULL OR s.as_preferred) AND w.ended_at IS NULL
  AND (NOT s.as_preferred OR w.state = 'PENDING')
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
"""


def refresh(*, at: datetime) -> int:
    """Let what has not ended accept what has its wish by now, and what waits what its project
    prefers by now; of how many pod sets that changed.

    What is named stays before, and what would accept nothing any more keeps what it accepts. One
    query when nobody asks for anything but by name.
    """
    with connection.cursor() as cursor:
        cursor.execute(_UNNAMED)
        groups = cursor.fetchall()
    if not groups:
        return 0
    shelf = _shelf({project for project, *_ in groups}, at)
    changed = 0
    for project, as_preferred, least_mib, vendors, *asked, named, before, sets, works in groups:
        if as_preferred:
            gpu_count, gpu_milli, memory_mib = asked
            kind = kind_asked(gpu_count=gpu_count, gpu_milli=gpu_milli, gpu_memory_mib=memory_mib)
            having = shelf.preferred_of(kind, project=project)
        else:
            having = shelf.having(WishSpec(least_mib, tuple(vendors)), project=project)
        now = [flavor.id for flavor in having if flavor.id not in named]
        if (now or named) and now != before:
            changed += _accept(
                list(zip(sets, works, strict=True)),
                now,
                behind=len(named),
                states=[State.PENDING] if as_preferred else list(State),
            )
    return changed


def _accept(
    pod_sets: Sequence[tuple[UUID, UUID]],
    wished: Sequence[UUID],
    *,
    behind: int,
    states: Sequence[State],
) -> int:
    """Of these pod sets, each with its workload, those whose work is in one of the states; how
    many that are. What has started meanwhile may run on what it would not accept any more."""
    with transaction.atomic():
        rows = Workload.objects.filter(id__in={work for _, work in pod_sets}, state__in=states)
        locked = set(
            rows.order_by("id").select_for_update(no_key=True).values_list("id", flat=True)
        )
        changed = [pod_set for pod_set, work in pod_sets if work in locked]
        PodSetFlavor.objects.filter(pod_set_id__in=changed, wished=True).delete()
        accepted = [
            (pod_set, flavor, behind + nth)
            for pod_set in changed
            for nth, flavor in enumerate(wished)
        ]
        bulk.insert(
            PodSetFlavor,
            id=uuid7s(len(accepted)),
            pod_set_id=[pod_set for pod_set, *_ in accepted],
            flavor_id=[flavor for _, flavor, _ in accepted],
            position=[position for *_, position in accepted],
            wished=True,
        )
        Workload.objects.filter(id__in=locked).update(asks_version=F("asks_version") + 1)
        hints.hint(hints.CYCLE)
    return len(changed)


def _is_unnamed(pod_set: PodSetSpec) -> bool:
    return pod_set.wish is not None or pod_set.as_preferred


def _shelf(projects: Iterable[UUID], at: datetime) -> Shelf:
    return Shelf(list(Flavor.objects.all()), _cheapest(at), preferred.by_project(set(projects)))


def _cheapest(at: datetime) -> dict[UUID, Decimal]:
    """By flavor, the lowest price an hour that any cluster has for it."""
    found: dict[UUID, Decimal] = {}
    for row in prices.at_moment(at=at).rows:
        found[row.flavor_id] = min(row.per_hour, found.get(row.flavor_id, row.per_hour))
    return found


def _why_named(pod_set: PodSetSpec, preferred: Sequence[str]) -> str:
    told = "At least one flavor is wanted, or a wish"
    if not preferred:
        return f"{told}; or its project has to prefer some."
    asked = KINDS[FlavorKind(pod_set.kind)]
    return f"{told}: none of those that its project prefers is of {asked}: {', '.join(preferred)}."


def _why_none(wish: WishSpec, whole: Sequence[Flavor]) -> str:
    theirs = [each for each in whole if not wish.vendors or each.vendor in wish.vendors]
    of = f" of {' or '.join(wish.vendors)}" if wish.vendors else ""
    if not theirs:
        made_by = sorted({each.vendor for each in whole if each.vendor})
        known = f"there are some of {', '.join(made_by)}" if made_by else "there are none here"
        return f"No flavor is of whole GPUs{of}; {known if of else 'there are none here'}."
    largest = max(theirs, key=lambda each: (each.memory_mib, each.name))
    return (
        f"No flavor{of} has {wish.least_memory_mib} MiB a GPU or more; the largest here is"
        f" {largest.name} with {largest.memory_mib} MiB."
    )
