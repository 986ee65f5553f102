"""Attacks on what people are told."""

from tenants.models import Delivery, Notice, User
from tests.constraints.attack import Attack
from tests.constraints.moves import change, copy
from tests.constraints.rows import NOON, Values, make

BY_MAIL: Values = {"user": lambda: make(User)}

ATTACKS = (
    Attack("tenants_notice_cause_key", "the same is told twice", copy(Notice)),
    Attack("delivery_once_a_user", "somebody is told twice", copy(Delivery, BY_MAIL)),
    Attack(
        "delivery_sent_or_failed",
        "it was sent and given up",
        change(Delivery, BY_MAIL, sent_at=NOON, failed_at=NOON),
    ),
    Attack(
        "tenants_delivery_tries_check",
        "it was tried less than never",
        change(Delivery, BY_MAIL, tries=-1),
    ),
)
