"""Attacks on pods that nobody knows, and on the numbers that clusters have shown."""

from scheduler.models import Stray, Workload
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import copy

ATTACKS = (
    Attack("stray_once", "a pod is a stray twice", copy(Stray)),
    negative("scheduler_stray_attempt_check", Stray, "attempt"),
    negative("scheduler_workload_attempts_seen_check", Workload, "attempts_seen"),
)
