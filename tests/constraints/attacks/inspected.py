"""Attacks on what a cluster said of a pod."""

from scheduler.models import Inspection
from tests.constraints.attack import Attack
from tests.constraints.moves import change, copy

ATTACKS = (
    Attack("scheduler_inspection_placement_id_key", "a pod is inspected twice", copy(Inspection)),
    Attack(
        "inspection_tells_at_its_end",
        "a log is told before the end",
        change(Inspection, log="epoch 1"),
    ),
    Attack(
        "inspection_tells_at_its_end",
        "events are told before the end",
        change(Inspection, events='[{"reason": "Started"}]'),
    ),
)
