"""Attacks on what people are told."""

from tenants.models import Delivery, Notice
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import change, copy
from tests.constraints.rows import NOON

ATTACKS = (
    Attack("tenants_notice_cause_key", "the same is told twice", copy(Notice)),
    Attack("delivery_once_a_user", "somebody is told twice", copy(Delivery)),
    Attack(
        "delivery_sent_or_failed",
        "it was sent and given up",
        change(Delivery, sent_at=NOON, failed_at=NOON),
    ),
    negative("tenants_delivery_tries_check", Delivery, "tries"),
)
