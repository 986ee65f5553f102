"""Cluster reports → facts → rows: what pods have come to, and what that frees.

Level-triggered: a report is compared with the placement it is about, so the same report twice, or
an old one, changes nothing. The only place that releases placements.

What must not live here: what it means for workloads (settle.py).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction

from clusters.port import PodPhase, PodReport
from controlplane.kernel import bulk, commits, hints, statements
from controlplane.kernel.crash import crash
from scheduler.core.failures import DELETED, GONE, OWN, FailureClass, classify, may_be_its_device
from scheduler.loop.measuring import meter
from scheduler.loop.observing import lost_devices, requeue, settle
from scheduler.selectors.fleet import rows
from scheduler.services.transition import lock
from tenants.services import usage


@dataclass(frozen=True, slots=True)
class Fact:
    """What is now known of a placement's pod. None leaves a column as it is."""

    placement_id: UUID
    started_at: datetime | None = None
    ended_at: datetime | None = None
    succeeded: bool | None = None
    exit_code: int | None = None
    reason: str = ""
    released: bool = False


@dataclass(frozen=True, slots=True)
class _Live:
    id: UUID
    pod_uid: str
    created_at: datetime
    started_at: datetime | None


def pods(
    *, cluster_id: UUID, reports: Sequence[PodReport], gone: Iterable[str], at: datetime
) -> int:
    """Take in pods as reported, and the uids of pods seen gone; how many placements changed.

    A report counts only for the placement of this cluster with its workload, attempt, rank and
    uid.
    """
    gone_uids = set(gone)
    ours = [report for report in reports if _tells(report, gone_uids) and is_ours(report)]
    live = _live(cluster_id, ours)
    facts = [
        fact
        for report in ours
        if (placement := live.get((report.workload, report.attempt, report.rank)))
        and placement.pod_uid == report.uid
        and (fact := _fact(report, placement, gone=report.uid in gone_uids, at=at))
    ]
    return record(facts=facts, at=at)


def expected(*, cluster_id: UUID) -> dict[str, tuple[UUID, datetime | None]]:
    """Uids of pods that should be there, with placement and start: to be read before a list."""
    with statements.cursor() as cursor:
        cursor.execute(
            "SELECT p.pod_uid, p.id, p.started_at FROM scheduler_placement p"
            " JOIN scheduler_attempt a ON a.id = p.attempt_id"
            " WHERE a.cluster_id = %s AND p.released_at IS NULL AND p.pod_uid <> ''",
            [cluster_id],
        )
        return {uid: (id, started_at) for uid, id, started_at in cursor.fetchall()}


def listed(
    *,
    cluster_id: UUID,
    reports: Sequence[PodReport],
    expected: Mapping[str, tuple[UUID, datetime | None]],
    at: datetime,
) -> int:
    """Take in a complete list; of what was `expected` before it began, what is not in it is
    gone: of a gang that failed by itself the others may be, so what it tells comes first."""
    present = {report.uid for report in reports}
    missing = [known for uid, known in expected.items() if uid not in present]
    changed = pods(cluster_id=cluster_id, reports=reports, gone=(), at=at)
    return changed + record(facts=[_gone(id, started_at, at) for id, started_at in missing], at=at)


def is_ours(report: PodReport) -> bool:
    """By its labels it is a pod of some workload of this installation."""
    if report.installation != settings.BERTH_INSTALLATION or not report.workload:
        return False
    try:
        UUID(report.workload)
    except ValueError:  # a forged or foreign label harms nobody
        return False
    return True


def _live(cluster_id: UUID, reports: Sequence[PodReport]) -> Mapping[tuple[str, int, int], _Live]:
    """Unreleased placements by (workload as its label says, attempt, rank)."""
    labels = {UUID(report.workload): report.workload for report in reports}
    if not labels:
        return {}
    with statements.cursor() as cursor:
        cursor.execute(
            "SELECT a.workload_id, a.number, p.rank, p.id, p.pod_uid, p.created_at, p.started_at"
            " FROM scheduler_placement p JOIN scheduler_attempt a ON a.id = p.attempt_id"
            " WHERE a.cluster_id = %s AND a.workload_id = ANY(%s) AND p.released_at IS NULL",
            [cluster_id, list(labels)],
        )
        return {
            (labels[workload], number, rank): _Live(*rest)
            for workload, number, rank, *rest in cursor.fetchall()
        }


def _tells(report: PodReport, gone: Set[str]) -> bool:
    """Whether there can be a fact in it, whatever is known: on its way to a node a pod has none,
    which is most of what a watch sends."""
    return report.phase.ended or report.phase == PodPhase.RUNNING or report.uid in gone


def _fact(report: PodReport, placement: _Live, *, gone: bool, at: datetime) -> Fact | None:
    """None when the report tells nothing that counts."""
    # A cluster's clock may be off: nothing starts before it was placed or after it was seen.
    started = _within(report.started_at, placement.created_at, at)
    ended = _within(report.finished_at, started or placement.created_at, at)
    if report.phase.ended:
        stopped = report.deleting and classify(report.reason) in OWN
        return Fact(
            placement.id,
            started_at=started,
            ended_at=ended or at,
            # A program may exit 0 on SIGTERM: its work is not done. What had ended before its
            # deletion was asked is never marked as being deleted: the API removes it at once.
            succeeded=report.phase == PodPhase.SUCCEEDED and not report.deleting,
            exit_code=report.exit_code,
            reason=DELETED if stopped else report.reason,
            released=True,
        )
    if gone:
        return _gone(placement.id, placement.started_at or started, at)
    if report.phase == PodPhase.RUNNING and placement.started_at is None:
        return Fact(placement.id, started_at=started or at)
    return None


def _within(moment: datetime | None, earliest: datetime, latest: datetime) -> datetime | None:
    return None if moment is None else min(max(moment, earliest), latest)


def _gone(placement_id: UUID, started_at: datetime | None, at: datetime) -> Fact:
    return Fact(
        placement_id,
        started_at=started_at,
        ended_at=at,
        succeeded=False,
        reason=GONE,
        released=True,
    )


_RECORD = """
WITH f AS (
    SELECT u.* FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[], %s::bool[],
                           %s::int[], %s::text[], %s::bool[])
        AS u(id, started_at, ended_at, succeeded, exit_code, reason, released)
    JOIN scheduler_placement k ON k.id = u.id ORDER BY k.id FOR NO KEY UPDATE OF k),
changed AS (
    UPDATE scheduler_placement p SET
        started_at = coalesce(p.started_at, f.started_at),
        ended_at = CASE WHEN f.ended_at IS NOT NULL
                        THEN greatest(f.ended_at, p.started_at, p.metered_until) END,
        succeeded = f.succeeded,
        exit_code = f.exit_code,
        end_reason = f.reason,
        released_at = CASE WHEN f.released THEN %s END
    FROM f
    WHERE p.id = f.id AND p.released_at IS NULL
    RETURNING p.id, p.attempt_id, p.released_at),
spans AS (
    UPDATE scheduler_placementspan s SET released_at = changed.released_at FROM changed
    WHERE s.placement_id = changed.id AND s.released_at IS NULL
      AND changed.released_at IS NOT NULL)
SELECT changed.id, a.id, released_at IS NOT NULL, a.unseen_since IS NOT NULL
FROM changed JOIN scheduler_attempt a ON a.id = changed.attempt_id
"""


def record(*, facts: Sequence[Fact], at: datetime) -> int:
    """Store facts and what follows from them, in one transaction; how many placements changed."""
    if not facts:
        return 0
    facts = list({fact.placement_id: fact for fact in facts}.values())
    crash("O1")
    with transaction.atomic():
        held = _held([fact.placement_id for fact in facts])
        ending = {fact.placement_id for fact in facts if fact.released}
        usage.lock(_given_back(each for id, each in held.items() if id in ending))
        lock({holding.attempt for holding in held.values()})
        changed = _store(_with_lost_devices(facts), at)
        released = [id for id, _, freed, _ in changed if freed]
        if released:
            usage.add(_given_back(held[id] for id in released))
            meter.close(placements=released)
        settle.settle(attempts={attempt for _, attempt, _, _ in changed}, at=at)
        # As the locked rows say: any of them may have ended unseen since `held` was read.
        unseen = {attempt for _, attempt, freed, lost in changed if freed and lost}
        if unseen:
            requeue.seen_gone(attempts=unseen, at=at)
        if released:
            hints.hint(hints.CYCLE)
        crash("E4")
    crash("O2")
    return len(changed)


def ended_before(*, attempt_id: UUID, placements: Mapping[UUID, PodReport], at: datetime) -> None:
    """Store what came of an attempt whose pods had all ended when it got its rows: those hold
    neither devices nor quota. In the caller's transaction, with what follows from it."""
    facts = [
        _fact(report, _Live(id, report.uid, at, None), gone=False, at=at)
        for id, report in placements.items()
    ]
    lock([attempt_id])
    _store([fact for fact in facts if fact], at)
    settle.settle(attempts=[attempt_id], at=at)


def _with_lost_devices(facts: Sequence[Fact]) -> list[Fact]:
    """Those that may have failed of a device are told to have, where one is sick or gone."""
    failed = [f for f in facts if f.succeeded is False and may_be_its_device(f.reason)]
    own = [f for f in failed if classify(f.reason) is FailureClass.EXIT_CODE]
    if not failed:
        return list(facts)
    found = lost_devices.reasons(
        by_itself=[fact.placement_id for fact in own],
        taken_away=[fact.placement_id for fact in failed if fact not in own],
    )
    return [replace(f, reason=found.get(f.placement_id, f.reason)) for f in facts]


def _store(facts: Sequence[Fact], at: datetime) -> list[tuple[UUID, UUID, bool, bool]]:
    """The placements that changed, with their attempts, whether they are released and whether
    they ended unseen."""
    columns = [
        bulk.array(fact.placement_id for fact in facts),
        bulk.array(fact.started_at for fact in facts),
        bulk.array(fact.ended_at for fact in facts),
        bulk.array(fact.succeeded for fact in facts),
        bulk.array(fact.exit_code for fact in facts),
        bulk.array(fact.reason[:200] for fact in facts),
        bulk.array(fact.released for fact in facts),
    ]
    return [
        (placement, attempt, released, unseen)
        for placement, attempt, released, unseen in rows(_RECORD, [*columns, at])
    ]


class _Held(NamedTuple):
    """What a placement holds: `amount_milli` of its project's quota for the flavor."""

    attempt: UUID
    project: UUID
    flavor: UUID
    amount_milli: int


_HELD = f"""
SELECT p.id, p.attempt_id, w.project_id, p.flavor_id, p.amount_milli
FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id, {commits.NOT_WAITING}
WHERE p.id = ANY(%s)
"""  # noqa: S608  # a constant


def _held(placements: Sequence[UUID]) -> dict[UUID, _Held]:
    """In a transaction whose commit from here on need not wait."""
    with statements.cursor() as cursor:
        cursor.execute(_HELD, [list(placements)])
        return {id: _Held(*rest) for id, *rest in cursor.fetchall()}


def _given_back(held: Iterable[_Held]) -> dict[tuple[UUID, UUID], int]:
    """Its sums, negative, by project and flavor."""
    amounts: Counter[tuple[UUID, UUID]] = Counter()
    for each in held:
        amounts[each.project, each.flavor] -= each.amount_milli
    return dict(amounts)
