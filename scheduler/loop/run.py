"""One scheduling cycle: lease, load, plan, apply, record.

Ideally a cycle maps the rows of one moment to the rows of the next. It departs from that in two
ways: what the rows refuse by the time it is applied waits for the next cycle, and what a plan
would admit beyond `Policy.max_admits`, or beyond the time to apply it, does too, with a hint for
another cycle at once.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from django.db import transaction

from clusters.services import restoring
from controlplane.kernel import hints
from controlplane.kernel.crash import crash
from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.loop import lease as leases
from scheduler.loop import retention
from scheduler.loop.applying import enforcement, resize
from scheduler.loop.applying.apply import Outcome, apply
from scheduler.loop.measuring import idle
from scheduler.loop.pace import Pace
from scheduler.loop.preparing import defrag, dependencies, drain, gates
from scheduler.loop.recording import faults, inputs, kept
from scheduler.models import CycleRecord
from scheduler.selectors import budgets, checks, due
from scheduler.selectors import policy as policies
from scheduler.selectors.load import load

logger = logging.getLogger(__name__)

SHARD = "fleet"
"""All capacity is one cohort so far, hence one shard."""
KEPT_DAYS = 14
"""How long the record of a cycle is kept."""

pace = Pace()
"""Of this process's cycles. `run_cycle` says when one has ended; who runs several waits for it."""


def run_cycle(
    *,
    at: datetime,
    speed: float = 1.0,
    policy: Policy | None = None,
    now: Callable[[], datetime] | None = None,
) -> CycleRecord | None:
    """Plan and apply once. None when another worker holds the lease, or nothing waits, nor runs
    with fewer pods than it asks for, nor on a later flavor than it asks to be moved to, nor is
    idle for too long, and no quota is to be enforced, nor anything to be stopped for a budget.

    `now` tells the moment of the plan once it is loaded for: what starts may follow what was
    released since `at` on the same device.

    While admission is stopped, nothing starts and nobody is evicted for others; only reasons are
    written.
    Queues are drained before, whatever else there is to do; but not while a cluster is unread
    since the database was put back: what that says of drains, gates and others' ends may be long
    over.
    """
    todo = due.now(at=at)
    acts = todo.drain or todo.defragment or todo.idle or todo.follow or todo.expire
    if acts and restoring.any_unread():
        todo = todo._replace(drain=False, defragment=False, idle=False, follow=False, expire=False)
    if todo.drain:
        drain.evict(at=at, speed=speed)
    if todo.defragment:
        defrag.carry_out(shard=SHARD, at=at, speed=speed)
    may_free = todo.idle and idle.warn(at=at) and not checks.admission_stopped()
    if not (todo.plan or may_free or (todo.hard and budgets.any_to_stop(at=at))):
        if todo.kept:  # for nobody any more
            kept.count(keeps=(), at=at, speed=speed)
        return None  # an idle installation pays for one query a tick
    if todo.follow:
        dependencies.settle(at=at)
    if todo.expire:
        gates.expire(at=at)
    policy = policy or policies.current()
    lease = leases.acquire(shard=SHARD)
    if lease is None:
        return None
    try:
        begun = perf_counter()
        at = now() if now else at
        loaded = load(at=at)
        crash("B2")
        loaded_at = perf_counter()
        policy = replace(policy, admission=not checks.admission_stopped())
        decided = _decide(loaded.snapshot, policy)
        leases.renew(lease)
        planned_at = perf_counter()
        outcome = apply(lease=lease, loaded=loaded, plan=decided, at=at, speed=speed)
        resize.shrink(lease=lease, shrinks=decided.shrinks, at=at)
        idle.free(lease=lease, loaded=loaded, frees=decided.frees, at=at, speed=speed)
        resize.grow(lease=lease, loaded=loaded, grows=decided.grows, at=at)
        enforcement.settle(lease=lease, snapshot=loaded.snapshot, at=at)
        applied_at = perf_counter()
    except leases.Fenced as fenced:
        logger.warning("cycle dropped: %s", fenced.message)
        return None
    finally:
        leases.release(lease)
    more = outcome.left or len(decided.admits) >= policy.max_admits
    if more:
        hints.send(hints.CYCLE)  # at once: what is left over waits for nothing that could come
    faults.log(decided.faults)
    with transaction.atomic():
        if decided.keeps or todo.kept:
            kept.count(keeps=decided.keeps, at=at, speed=speed)
        retention.prune(CycleRecord, days=KEPT_DAYS)
        record = CycleRecord.objects.create(
            shard=lease.shard,
            epoch=lease.epoch,
            at=at,
            pending_count=len(loaded.snapshot.pending),
            holding_count=len(loaded.snapshot.holding),
            admitted_count=len(outcome.admitted),
            refused_count=len(outcome.refused),
            preempted_count=len(outcome.preempted),
            load_ms=_ms(loaded_at - begun),
            plan_ms=_ms(planned_at - loaded_at),
            apply_ms=_ms(applied_at - planned_at),
            plan=_summary(decided, outcome),
            faults=faults.summary(decided.faults),
        )
        inputs.keep(
            record,
            snapshot=loaded.snapshot,
            policy=policy,
            made=decided,
            told=outcome.told,
            carried_out=not (outcome.refused or outcome.left),
        )
    if not more:
        pace.ended(took_s=perf_counter() - begun)
    return record


# What the last cycle of this process worked out. Taken by who plans, so that nobody shares it.
_memories: list[Memory] = []


def _decide(snapshot: Snapshot, policy: Policy) -> Plan:
    memory = _memories.pop() if _memories else Memory()
    made = plan(snapshot, policy, memory)
    _memories[:] = [memory]
    return made


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _summary(decided: Plan, outcome: Outcome) -> dict[str, object]:
    """The decisions that changed something; holds are on the workloads themselves."""
    return {
        "admits": [[admit.workload, admit.cluster, len(admit.places)] for admit in decided.admits],
        "refused": list(outcome.refused),
        "preempts": [[p.victim, p.preemptor, p.rule] for p in decided.preempts],
        "shrinks": [[s.victim, s.preemptor, s.rule, len(s.placements)] for s in decided.shrinks],
        "grows": [[grow.workload, len(grow.places)] for grow in decided.grows],
        "frees": list(decided.frees),
        "keeps": [[keep.workload, keep.starts_at, keep.idle_milli] for keep in decided.keeps],
    }
