"""Attacks on what is counted of room that is kept."""

from scheduler.models import KeptRoom
from tests.constraints.attack import Attack
from tests.constraints.moves import change, copy

ATTACKS = (
    Attack("scheduler_keptroom_workload_id_key", "room is kept for work twice", copy(KeptRoom)),
    Attack("kept_room_not_negative", "less than nothing is idle", change(KeptRoom, idle_milli=-1)),
    Attack("kept_room_not_negative", "the sum falls", change(KeptRoom, idle_milli_s=-1)),
)
