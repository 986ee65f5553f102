"""Attacks on where work runs: attempts, the outbox, the lease and the cycles' records.

What must not live here: what attempts hold (held.py).
"""

from clusters.models import Cluster
from scheduler.models import (
    Attempt,
    CycleInput,
    CycleRecord,
    InvariantCheck,
    Operation,
    PoolSample,
    SchedulerLease,
    Workload,
)
from tests.constraints.attack import Attack, negative
from tests.constraints.moves import change, copy, empty, remove
from tests.constraints.rows import NOON, make

ENDED = {"ended_at": NOON, "outcome": "failed"}

ATTEMPTS = (
    Attack(
        "attempt_failure_known",
        "it failed in no known way",
        change(Attempt, failure="bad-luck"),
    ),
    *(
        Attack("attempt_loses_at_a_bad_end", what, change(Attempt, given, lost_milli_s=lost))
        for what, given, lost in (
            ("what runs has lost its work", {}, 1000),
            ("what is done has lost its work", {**ENDED, "outcome": "succeeded"}, 1000),
            ("work is won by failing", ENDED, -1),
        )
    ),
    Attack("attempt_number_once", "two attempts are the first", copy(Attempt, ENDED)),
    Attack("attempt_one_live", "a workload runs twice at once", copy(Attempt, number=2)),
    Attack("attempt_outcome_at_end", "it failed and goes on", change(Attempt, outcome="failed")),
    Attack("attempt_outcome_at_end", "it ended somehow", change(Attempt, ended_at=NOON)),
    Attack(
        "attempt_outcome_at_end",
        "it ended in no known way",
        change(Attempt, ended_at=NOON, outcome="vanished"),
    ),
    *(
        Attack("attempt_unseen_after_loss", what, change(Attempt, given, unseen_since=NOON))
        for what, given in (
            ("what runs is given up", {}),
            ("what failed by itself holds on", ENDED | {"failure": "exit-code"}),
        )
    ),
    *(
        Attack("attempt_collected_after_end", what, change(Attempt, given, **columns))
        for what, given, columns in (
            ("what runs is collected", {}, {"leftover": "pods", "collect_at": NOON}),
            ("it is collected at no time", ENDED, {"leftover": "pods"}),
            ("nothing is collected", ENDED, {"collect_at": NOON}),
            ("a dance is collected", ENDED, {"leftover": "dance", "collect_at": NOON}),
        )
    ),
    *(
        Attack("attempt_stays", f"an attempt {what}", change(Attempt, **columns))
        for what, columns in (
            ("is another workload's", {"workload_id": lambda: make(Workload).pk}),
            ("moves to another cluster", {"cluster_id": lambda: make(Cluster).pk}),
            ("is another try", {"number": 2}),
            ("was decided by another leader", {"epoch": 2}),
        )
    ),
    negative("scheduler_attempt_number_check", Attempt, "number", "attempt_stays"),
)

LEASES = (
    Attack(
        "lease_epoch_never_falls",
        "a leader that was replaced leads again",
        change(SchedulerLease, {"epoch": 2}, epoch=1),
    ),
    Attack(
        "lease_epoch_never_falls",
        "a lease makes room for one with a first epoch",
        change(SchedulerLease, shard="another"),
    ),
    Attack("lease_is_kept", "nobody knows the epoch", remove(SchedulerLease)),
    Attack("lease_never_emptied", "nobody knows any epoch", empty(SchedulerLease)),
)

RECORDS = (
    Attack("operation_once_an_attempt", "an attempt starts twice", copy(Operation)),
    Attack("operation_kind_known", "an operation is a dance", change(Operation, kind="dance")),
    negative("scheduler_operation_failures_check", Operation, "failures"),
    negative("scheduler_invariantcheck_took_ms_check", InvariantCheck, "took_ms"),
    Attack("pool_sample_once_a_moment", "a pool is measured twice at once", copy(PoolSample)),
    *(
        Attack("pool_sample_in_order", what, change(PoolSample, **{column: value}))
        for what, column, value in (
            ("more is free than there is", "free_milli", 2),
            ("more is stranded than is free", "stranded_milli", 2),
            ("less than nothing is stranded", "stranded_milli", -1),
            ("more than all is scattered", "scattered_milli", 1001),
        )
    ),
    negative("scheduler_poolsample_scattered_milli_check", PoolSample, "scattered_milli"),
    negative("scheduler_poolsample_whole_nodes_check", PoolSample, "whole_nodes"),
    negative("scheduler_cycleinput_schema_check", CycleInput, "schema"),
    *(
        negative(f"scheduler_cyclerecord_{column}_check", CycleRecord, column)
        for column in (
            "pending_count",
            "holding_count",
            "admitted_count",
            "refused_count",
            "preempted_count",
            "load_ms",
            "plan_ms",
            "apply_ms",
        )
    ),
)

ATTACKS = ATTEMPTS + LEASES + RECORDS
