"""Attacks on what was made in a cluster."""

from scheduler.models import CaughtPod, Origin, Placement
from tests.constraints.attack import Attack
from tests.constraints.moves import copy
from tests.constraints.rows import make

ATTACKS = (
    Attack("scheduler_origin_workload_id_key", "a workload was made of two", copy(Origin)),
    Attack("caught_pod_once", "one pod is caught twice", copy(CaughtPod, placement_id=None)),
    Attack(
        "caught_pod_of_one_placement",
        "two pods of a cluster are for one placement",
        copy(CaughtPod, {"placement": lambda: make(Placement)}, uid="another"),
    ),
)
