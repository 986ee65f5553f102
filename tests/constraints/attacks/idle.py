"""Attacks on what is written down of work that leaves its devices unused."""

from scheduler.models import Idleness
from tests.constraints.attack import Attack
from tests.constraints.moves import Sql, change, copy

ATTACKS = (
    Attack("scheduler_idleness_attempt_id_key", "an attempt is idle twice", copy(Idleness)),
    Attack(
        "idleness_told_of_after_it_began",
        "it was told before it was idle",
        change(Idleness, warned_at=Sql("since - interval '1 second'")),
    ),
)
