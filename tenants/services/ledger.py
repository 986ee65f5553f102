"""Usage → charges. Rows are only added; what has no rate yet is charged once there is one."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Exists, OuterRef, Q

from controlplane.kernel import bulk
from tenants import pricing
from tenants.models import Charge, Rate, UsageInterval
from tenants.services import past


def record(usages: Iterable[UsageInterval]) -> None:
    """Store usage, its charges and what is remembered of it; an interval across a change of price
    is cut there.

    Raises IntegrityError (`usage_metered_once`) when time would be metered twice.
    """
    whole = list(usages)
    if not whole:
        return
    rates = _rates({usage.flavor_id for usage in whole})
    cut = [part for usage in whole for part in _cut(usage, rates[usage.flavor_id])]
    with transaction.atomic(savepoint=False):
        bulk.save([usage for usage, _ in cut])
        past.add(usage for usage, _ in cut)
        bulk.save([_charge(usage, rate) for usage, rate in cut if rate is not None])


def charge_unpriced(*, limit: int = 5000) -> int:
    """Charge stored usage for which a rate has appeared since, the oldest `limit` of it; how much
    there was.

    A rate that begins inside a stored interval does not price it: rates are set ahead. Usage
    without a rate is passed over, so that however much there is keeps nothing else waiting.
    """
    priced_by = Rate.objects.filter(
        Q(cluster=OuterRef("cluster_id")) | Q(cluster=None),
        flavor=OuterRef("flavor_id"),
        during__contains=OuterRef("during__startswith"),
    )
    waiting = UsageInterval.objects.filter(Exists(priced_by), charges__isnull=True)
    unpriced = list(waiting.order_by("id")[:limit])
    rates = _rates({usage.flavor_id for usage in unpriced})
    charges = []
    for usage in unpriced:
        rate = _rate_at(rates[usage.flavor_id], usage.cluster_id, usage.during.lower)
        if rate is not None:
            charges.append(_charge(usage, rate))
    # Another meter may have charged some meanwhile; `charge_once_a_usage` keeps them single.
    Charge.objects.bulk_create(charges, batch_size=1000, ignore_conflicts=True)
    return len(charges)


def _charge(usage: UsageInterval, rate: Rate) -> Charge:
    return Charge(
        usage_id=usage.id,
        project_id=usage.project_id,
        flavor_id=usage.flavor_id,
        workload_id=usage.workload_id,
        rate_id=rate.id,
        amount=pricing.charge(
            amount_milli=usage.amount_milli,
            held=usage.during.upper - usage.during.lower,
            price_per_hour=rate.price_per_hour,
        ),
        currency=rate.currency,
        ended_at=usage.during.upper,
    )


def _rates(flavors: set[UUID]) -> dict[UUID, list[Rate]]:
    found: dict[UUID, list[Rate]] = defaultdict(list)
    for rate in Rate.objects.filter(flavor_id__in=flavors):
        found[rate.flavor_id].append(rate)
    return found


def _rate_at(rates: Sequence[Rate], cluster: UUID, at: datetime) -> Rate | None:
    """The cluster's own rate goes before the one for any cluster."""
    valid = [rate for rate in rates if rate.cluster_id in (cluster, None) and at in rate.during]
    return min(valid, key=lambda rate: rate.cluster_id is None, default=None)


def _cut(usage: UsageInterval, rates: Sequence[Rate]) -> list[tuple[UsageInterval, Rate | None]]:
    """The interval in parts of one price each."""
    start, end = usage.during.lower, usage.during.upper
    edges = {
        edge
        for rate in rates
        for edge in (rate.during.lower, rate.during.upper)
        if edge is not None and start < edge < end
    }
    if not edges:
        return [(usage, _rate_at(rates, usage.cluster_id, start))]
    bounds = [start, *sorted(edges), end]
    parts = []
    for lower, upper in pairwise(bounds):
        part = UsageInterval(
            project_id=usage.project_id,
            flavor_id=usage.flavor_id,
            cluster_id=usage.cluster_id,
            user_id=usage.user_id,
            placement_id=usage.placement_id,
            workload_id=usage.workload_id,
            amount_milli=usage.amount_milli,
            during=DateTimeTZRange(lower, upper),
        )
        parts.append((part, _rate_at(rates, usage.cluster_id, lower)))
    return parts
