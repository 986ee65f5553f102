"""Which flavors have what a pod set wishes of a device: found when it is submitted, and again when
flavors or prices have changed, so that what waits may use what came later (ADR 0039)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F

from clusters.models import Flavor, FlavorKind
from controlplane.kernel import bulk, hints
from controlplane.kernel.errors import Problem
from controlplane.kernel.ids import uuid7
from scheduler.models import PodSetFlavor, Workload
from scheduler.services.specs import WishSpec, WorkloadSpec
from tenants.selectors import prices

MIB_A_GIB = 1024


def widened(*, specs: Sequence[WorkloadSpec], at: datetime) -> Sequence[WorkloadSpec]:
    """The specs with `wished`, at the prices of the moment. No query when nothing is wished."""
    if not any(pod_set.wish for spec in specs for pod_set in spec.pod_sets):
        return specs
    flavors, cheapest = list(Flavor.objects.all()), _cheapest(at)
    return [
        replace(
            spec,
            pod_sets=tuple(
                replace(
                    pod_set,
                    wished=tuple(
                        flavor.name
                        for flavor in _having(pod_set.wish, flavors, cheapest)
                        if flavor.name not in pod_set.flavors
                    ),
                )
                if pod_set.wish
                else pod_set
                for pod_set in spec.pod_sets
            ),
        )
        for spec in specs
    ]


def problems(*, specs: Sequence[WorkloadSpec]) -> list[Problem]:
    """One for each wish that no flavor has, where none is named either. Pointers begin with the
    spec's index. No query without such a wish."""
    in_vain = [
        (f"/{index}/pod_sets/{position}/wish", pod_set.wish)
        for index, spec in enumerate(specs)
        for position, pod_set in enumerate(spec.pod_sets)
        if pod_set.wish and not pod_set.accepted
    ]
    whole = list(Flavor.objects.filter(kind=FlavorKind.WHOLE)) if in_vain else []
    return [
        Problem(pointer=pointer, code="no-such-device", message=_why_none(wish, whole))
        for pointer, wish in in_vain
    ]


# Of work that has not ended: pod sets that wish, and accept, the same.
_WISHES = """
SELECT s.least_memory_mib, s.vendors, f.named, f.wished, array_agg(s.id),
       array_agg(DISTINCT s.workload_id)
FROM scheduler_podset s JOIN scheduler_workload w ON w.id = s.workload_id
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(flavor_id ORDER BY position) FILTER (WHERE NOT wished), '{}') named,
           coalesce(array_agg(flavor_id ORDER BY position) FILTER (WHERE wished), '{}') wished
    FROM scheduler_podsetflavor WHERE pod_set_id = s.id) f
WHERE s.least_memory_mib IS NOT NULL AND w.ended_at IS NULL
GROUP BY 1, 2, 3, 4
"""


def refresh(*, at: datetime) -> int:
    """Let what has not ended accept what has its wish by now; of how many pod sets that changed.

    What is named stays before. One query when nobody wishes for anything.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WISHES)
        groups = cursor.fetchall()
    if not groups:
        return 0
    flavors, cheapest = list(Flavor.objects.all()), _cheapest(at)
    changed = 0
    for least_memory_mib, vendors, named, before, pod_sets, workloads in groups:
        having = _having(WishSpec(least_memory_mib, tuple(vendors)), flavors, cheapest)
        now = [flavor.id for flavor in having if flavor.id not in named]
        if now != before:
            _accept(pod_sets, workloads, now, behind=len(named))
            changed += len(pod_sets)
    return changed


def _accept(
    pod_sets: Sequence[UUID], workloads: Sequence[UUID], wished: Sequence[UUID], *, behind: int
) -> None:
    with transaction.atomic():
        rows = Workload.objects.filter(id__in=workloads)
        list(rows.order_by("id").select_for_update(no_key=True).values_list("id"))
        PodSetFlavor.objects.filter(pod_set_id__in=pod_sets, wished=True).delete()
        accepted = [
            (pod_set, flavor, behind + nth)
            for pod_set in pod_sets
            for nth, flavor in enumerate(wished)
        ]
        bulk.insert(
            PodSetFlavor,
            id=[uuid7() for _ in accepted],
            pod_set_id=[pod_set for pod_set, *_ in accepted],
            flavor_id=[flavor for _, flavor, _ in accepted],
            position=[position for *_, position in accepted],
            wished=True,
        )
        rows.update(asks_version=F("asks_version") + 1)
        hints.hint(hints.CYCLE)


def _having(
    wish: WishSpec, flavors: Iterable[Flavor], cheapest: Mapping[UUID, Decimal]
) -> list[Flavor]:
    """Flavors of whole devices that have it: the smallest first, then the cheapest, those without
    a price last, then by name.

    In whole GiB, for models of one size report a few MiB more or less: 81,559 and 81,920.
    """

    def key(flavor: Flavor) -> tuple[int, Decimal, str]:
        price = cheapest.get(flavor.id, Decimal("Infinity"))
        return -(-flavor.memory_mib // MIB_A_GIB), price, flavor.name

    return sorted(
        (
            flavor
            for flavor in flavors
            if flavor.kind == FlavorKind.WHOLE
            and flavor.memory_mib >= wish.least_memory_mib
            and (not wish.vendors or flavor.vendor in wish.vendors)
        ),
        key=key,
    )


def _cheapest(at: datetime) -> dict[UUID, Decimal]:
    """By flavor, the lowest price an hour that any cluster has for it."""
    found: dict[UUID, Decimal] = {}
    for row in prices.at_moment(at=at).rows:
        found[row.flavor_id] = min(row.per_hour, found.get(row.flavor_id, row.per_hour))
    return found


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
