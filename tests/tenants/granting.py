"""Asking and granting, as the tests of grants do."""

from datetime import datetime
from typing import Any

from clusters.models import Flavor
from tenants.access import Actor, actor_for
from tenants.models import Quota, QuotaRequest, User
from tenants.services import requests
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast

AT = factories.AT


def of(user: User) -> Actor:
    return actor_for(user=user)


def ask(cast: Cast, h100: Flavor, nominal_milli: int = 16_000, **when: Any) -> QuotaRequest:
    """Any: moments."""
    return requests.open(
        actor=of(cast.ben),
        project=cast.detection,
        flavor=h100,
        allotment=Allotment(nominal_milli=nominal_milli, **when),
        reason="A larger model.",
        at=AT,
    )


def grant(cast: Cast, asked: QuotaRequest, at: datetime = AT, **how: Any) -> QuotaRequest:
    """Any: what is given, and seen."""
    return requests.grant(actor=of(cast.pia), request=asked, note="Yes.", at=at, **how)


def nominal() -> int:
    return Quota.objects.get().nominal_milli
