"""Celery tasks of tenants: grants, requests, reviews, and what people are told. At least once, in
any order, is assumed."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from celery import shared_task

from controlplane.kernel import clock, hints
from tenants.services import deliveries, grants, notices, reviews, steps

TURN_S = 5.0
"""How long one task delivers before it makes way for others."""


@shared_task(name="tenants.begin_and_end_grants")
def begin_and_end_grants(**_: Any) -> None:  # Any: old workers survive new senders' arguments
    """Begin and end what was granted from a moment on, and for a time, and tell of what ends
    soon."""
    grants.begin_and_end_due(at=clock.now())
    notices.remind(at=clock.now())


@shared_task(name="tenants.escalate_requests")
def escalate_requests(**_: Any) -> None:  # Any: as above
    """Have requests for quota that nobody answered in time go up."""
    steps.escalate_due(at=clock.now())


@shared_task(name="tenants.review_quotas")
def review_quotas(**_: Any) -> None:  # Any: as above
    """Tell of reviews of projects' quotas that end soon, and freeze what nobody confirmed."""
    reviews.review_due(at=clock.now())


@shared_task(name=hints.MAIL)
def send_mail(**_: Any) -> None:  # Any: as above
    """Send the mail that is due, in one process at a time."""
    _deliver(hints.MAIL, deliveries.mail_due)


@shared_task(name=hints.CHANNELS)
def tell_channels(**_: Any) -> None:  # Any: as above
    """Send what is due to channels, as mail."""
    _deliver(hints.CHANNELS, deliveries.post_due)


def _deliver(lane: str, send_due: Callable[..., int]) -> None:
    """Who does not answer holds one process alone, and no other lane."""
    hints.taken(lane)
    if not hints.begin(lane, for_s=hints.HARD_S):
        return
    ends = monotonic() + TURN_S
    try:
        send_due(at=clock.now, goes_on=lambda: monotonic() < ends)
    finally:
        hints.end(lane)
