"""Setting prices. A price is never changed, only ended: what was charged keeps its rate."""

import re
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor, FlavorKind
from controlplane.audit.services import Entry
from controlplane.kernel.errors import Conflict, Invalid
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Rate
from tenants.services import trail

PRICE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def set_rate(
    *,
    actor: Actor,
    flavor: Flavor,
    cluster: Cluster | None,
    price_per_hour: Decimal,
    currency: str,
    start: datetime | None,
    at: datetime,
) -> Rate:
    """The price of the flavor, there or (None) anywhere, from `start` on, by default from now.

    The one in force ends then. Raises NotAllowed, Invalid for a moment that has passed, an amount
    out of range or a currency that is not the installation's, Conflict when a later price is set
    already.
    """
    access.authorize_fleet(actor, Action.OPERATE)
    if flavor.kind == FlavorKind.MODEL:
        raise Invalid(
            f"{flavor.name} is a quota over all of {flavor.model}: set prices of what work gets.",
            pointer="/flavor",
            code="wrong-flavor",
        )
    start = at if start is None else start
    if start < at:
        raise Invalid(
            "A price begins now or later: what is held is charged as it was priced.",
            pointer="/from",
            code="out-of-range",
        )
    if not PRICE.fullmatch(f"{price_per_hour:f}"):
        raise Invalid(
            "0 to 999999.999999 is wanted, with at most 6 decimals.",
            pointer="/price_per_hour",
            code="out-of-range",
        )
    if currency != settings.BERTH_CURRENCY:
        raise Invalid(
            f"Prices of this installation are in {settings.BERTH_CURRENCY}.", pointer="/currency"
        )
    try:
        with transaction.atomic():
            ended = _end(flavor, cluster, start)
            rate = Rate.objects.create(
                flavor=flavor,
                cluster=cluster,
                price_per_hour=price_per_hour,
                currency=currency,
                during=DateTimeTZRange(start, None),
            )
            _record(actor, rate, ended, start, at)
    except IntegrityError as error:  # an exclusion constraint: two prices at one moment
        raise _planned(start) from error
    return rate


def _end(flavor: Flavor, cluster: Cluster | None, start: datetime) -> Rate | None:
    """The open price that holds at `start`, closed there."""
    rate = (
        Rate.objects.select_for_update()
        .filter(flavor=flavor, cluster=cluster, during__contains=start, during__upper_inf=True)
        .first()
    )
    if rate is None:
        return None
    lower = rate.during.lower
    if lower == start:
        raise _planned(start)
    bounds = "[)" if rate.during.lower_inc else "()"
    Rate.objects.filter(id=rate.id).update(during=DateTimeTZRange(lower, start, bounds))
    return rate


def _planned(start: datetime) -> Conflict:
    return Conflict(f"A price is set already for {start.isoformat()} or after.", pointer="/from")


def _record(actor: Actor, rate: Rate, ended: Rate | None, start: datetime, at: datetime) -> None:
    trail.record(
        Entry(
            action="rate.set",
            target_type="rate",
            target_id=rate.id,
            before=_fields(ended) if ended else {},
            after={**_fields(rate), "from": start.isoformat()},
        ),
        actor=actor,
        at=at,
    )


def _fields(rate: Rate) -> dict[str, object]:
    return {
        "id": str(rate.id),
        "flavor": str(rate.flavor_id),
        "cluster": str(rate.cluster_id) if rate.cluster_id else None,
        "price_per_hour": str(rate.price_per_hour),
        "currency": rate.currency,
    }
