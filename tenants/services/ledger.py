"""Usage → charges. Rows are only added; what has no rate yet is charged once there is one.

It is recorded with each end, so no models are made of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from controlplane.kernel import bulk, statements
from controlplane.kernel.ids import uuid7s
from tenants import pricing
from tenants.models import Charge, Rate, UsageInterval
from tenants.services import past
from tenants.services.past import Interval


class _Rate(NamedTuple):
    """What a row of them tells: the cluster's own, or for `cluster_id` None any cluster's, from
    `begins_at` up to before `ends_at`, which are None where it has no bound."""

    id: UUID
    cluster_id: UUID | None
    price_per_hour: Decimal
    currency: str
    begins_at: datetime | None
    ends_at: datetime | None

    def holds(self, at: datetime) -> bool:
        begun = self.begins_at is None or self.begins_at <= at
        return begun and (self.ends_at is None or at < self.ends_at)


def record(intervals: Iterable[Interval]) -> None:
    """Store usage, its charges and what is remembered of it; an interval across a change of price
    is cut there.

    Raises IntegrityError (`usage_metered_once`) when time would be metered twice.
    """
    whole = list(intervals)
    if not whole:
        return
    rates = _rates({one.flavor_id for one in whole})
    cut = [part for one in whole for part in _cut(one, rates[one.flavor_id])]
    ids = uuid7s(len(cut))
    with transaction.atomic(savepoint=False):
        bulk.insert(
            UsageInterval,
            id=ids,
            project_id=[one.project_id for one, _ in cut],
            flavor_id=[one.flavor_id for one, _ in cut],
            cluster_id=[one.cluster_id for one, _ in cut],
            user_id=[one.user_id for one, _ in cut],
            placement_id=[one.placement_id for one, _ in cut],
            workload_id=[one.workload_id for one, _ in cut],
            amount_milli=[one.amount_milli for one, _ in cut],
            during=[f"[{one.begins_at},{one.ends_at})" for one, _ in cut],
        )
        past.add(one for one, _ in cut)
        _charge([(id, one, rate) for id, (one, rate) in zip(ids, cut, strict=True) if rate])


def _charge(priced: Sequence[tuple[UUID, Interval, _Rate]]) -> None:
    """Store the charges of these, which are stored under these ids."""
    bulk.insert(
        Charge,
        id=uuid7s(len(priced)),
        usage_id=[id for id, _, _ in priced],
        project_id=[one.project_id for _, one, _ in priced],
        flavor_id=[one.flavor_id for _, one, _ in priced],
        workload_id=[one.workload_id for _, one, _ in priced],
        rate_id=[rate.id for _, _, rate in priced],
        amount=[
            pricing.charge(
                amount_milli=one.amount_milli,
                held=one.ends_at - one.begins_at,
                price_per_hour=rate.price_per_hour,
            )
            for _, one, rate in priced
        ],
        currency=[rate.currency for _, _, rate in priced],
        ended_at=[one.ends_at for _, one, _ in priced],
    )


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
        start, end = usage.during.lower, usage.during.upper
        rate = _rate_at(rates[usage.flavor_id], usage.cluster_id, start)
        if rate is not None:
            charges.append(
                Charge(
                    usage_id=usage.id,
                    project_id=usage.project_id,
                    flavor_id=usage.flavor_id,
                    workload_id=usage.workload_id,
                    rate_id=rate.id,
                    amount=pricing.charge(
                        amount_milli=usage.amount_milli,
                        held=end - start,
                        price_per_hour=rate.price_per_hour,
                    ),
                    currency=rate.currency,
                    ended_at=end,
                )
            )
    # Another meter may have charged some meanwhile; `charge_once_a_usage` keeps them single.
    Charge.objects.bulk_create(charges, batch_size=1000, ignore_conflicts=True)
    return len(charges)


_RATES = """
SELECT flavor_id, id, cluster_id, price_per_hour, currency, lower(during), upper(during)
FROM tenants_rate WHERE flavor_id = ANY(%s)
"""


def _rates(flavors: set[UUID]) -> dict[UUID, list[_Rate]]:
    found: dict[UUID, list[_Rate]] = defaultdict(list)
    with statements.cursor() as cursor:
        cursor.execute(_RATES, [list(flavors)])
        for flavor, *told in cursor.fetchall():
            found[flavor].append(_Rate(*told))
    return found


def _rate_at(rates: Sequence[_Rate], cluster: UUID, at: datetime) -> _Rate | None:
    """The cluster's own rate goes before the one for any cluster."""
    valid = [each for each in rates if each.cluster_id in (cluster, None) and each.holds(at)]
    return min(valid, key=lambda rate: rate.cluster_id is None, default=None)


def _cut(whole: Interval, rates: Sequence[_Rate]) -> list[tuple[Interval, _Rate | None]]:
    """The interval in parts of one price each."""
    start, end = whole.begins_at, whole.ends_at
    edges = {
        edge
        for rate in rates
        for edge in (rate.begins_at, rate.ends_at)
        if edge is not None and start < edge < end
    }
    return [
        (
            whole._replace(begins_at=lower, ends_at=upper),
            _rate_at(rates, whole.cluster_id, lower),
        )
        for lower, upper in pairwise([start, *sorted(edges), end])
    ]
