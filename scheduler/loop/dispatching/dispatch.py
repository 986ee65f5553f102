"""Placements → cluster: carries out the outbox. No network inside a transaction, no decision.

An attempt is claimed whole, so start and stop of one gang never run at once. Starting is
two-phase: create every pod gated, store its uid, then open the gates; a pod whose uid is not
stored is never opened, so a retry or a late duplicate can't start work twice (P3). Pods that come
to a gang that runs, or go, are started and stopped in the same way (`applying/resize`).
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import batched
from time import monotonic
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from clusters.port import ClusterError, ClusterPort, Fault, PodPhase, PodReport
from controlplane.kernel.crash import crash
from scheduler.core.failures import GONE, NEVER_STARTED, FailureClass
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import confine
from scheduler.loop.dispatching.calls import Answers, Batch, Calls, Coming, errors, is_of, threads
from scheduler.loop.observing import observe, requeue, settle
from scheduler.loop.observing.retry import give_up
from scheduler.loop.pods.claims import (
    Claimed,
    Pod,
    claim,
    close,
    close_started,
    keep,
    let_go,
    mark_opened,
    postpone,
    prolong,
    still_mine,
    store_uids,
)
from scheduler.models import OperationKind
from scheduler.services.transition import Step, lock, transition

logger = logging.getLogger(__name__)

ACTOR = confine.ACTOR
BATCH = 60
GROUP = 20
"""Attempts of a batch that go through its phases together."""
# What no retry can mend: the attempt is given up and the workload tried again from the start. A
# missing right is none of it: an operator mends that, and it is no fault of the workload's.
_HOPELESS = frozenset({Fault.INVALID, Fault.CONFLICT})
_HOPELESS_OPEN = frozenset({Fault.INVALID})


def dispatch(
    *, port: ClusterPort, cluster_id: UUID, at: Callable[[], datetime], limit: int | None = None
) -> Batch:
    """Carry out one batch of this cluster's due operations, `limit` (BATCH) attempts at most.

    What breaks it, a time limit of the caller's too, is raised; what it had claimed is postponed.
    """
    token = uuid4()
    claimed = claim(cluster_id=cluster_id, token=token, limit=limit or BATCH)
    crash("D1")
    if not claimed:
        return Batch(0, reached=True)
    try:
        with threads() as pool:
            calls = Calls(port, pool, _Heartbeat(claimed, token))
            hand = _Hand(calls, cluster_id, token, at)
            for kind, act in hand.acts.items():
                if due := [attempt for attempt in claimed if attempt.due is kind]:
                    act(due)
    except Exception as error:
        why = f"the batch was broken off: {error!r}"
        postpone(attempts=[attempt.id for attempt in claimed], why=why, token=token)
        raise
    return Batch(len(claimed), calls.reached)


class _Heartbeat:
    """Prolongs the batch's claims, when called, before they run out."""

    def __init__(self, claimed: Sequence[Claimed], token: UUID) -> None:
        self._claimed = claimed
        self._token = token
        self._last = monotonic()

    def __call__(self) -> None:
        if monotonic() - self._last > settings.BERTH_CLAIM_S / 4:
            prolong(attempts=self._claimed, token=self._token)
            self._last = monotonic()


class _Hand:
    """One batch's way through the phases."""

    def __init__(
        self, calls: Calls, cluster_id: UUID, token: UUID, at: Callable[[], datetime]
    ) -> None:
        self._calls = calls
        self._cluster_id = cluster_id
        self._token = token
        self._at = at
        self.acts: Mapping[OperationKind, Callable[[Sequence[Claimed]], None]] = {
            OperationKind.START: self.resize,
            OperationKind.NOTICE: self.give_notice,
            OperationKind.STOP: self.stop,
        }

    def resize(self, attempts: Sequence[Claimed]) -> None:
        """Ask for the end of those dismissed, then start what is not open yet."""
        leaving = [_only(a, [p for p in a.pods if p.dismissed]) for a in attempts]
        leaving = [attempt for attempt in leaving if attempt.pods]
        asked, never_born = self._end(leaving) if leaving else ([], [])
        at = self._at()
        observe.record(facts=[_unborn(id, at) for id in never_born], at=at)
        postponed = {a.id for a in leaving} - {a.id for a in asked}
        self._start(
            [
                _only(a, [p for p in a.pods if not (p.opened or p.dismissed)])
                for a in attempts
                if a.id not in postponed
            ],
            dismissed=[pod.placement_id for pod in _pods(asked)],
        )

    def _start(self, attempts: Sequence[Claimed], *, dismissed: Sequence[UUID]) -> None:
        """Those whose projects are confined there as wanted wait for no others."""
        projects = {a.project_id: a.namespace for a in attempts}
        due = confine.due(cluster_id=self._cluster_id, projects=projects)
        ready = [a for a in attempts if a.project_id not in due]
        self._close_started(self._opened(ready), dismissed)
        if due:
            waited = [a for a in attempts if a.project_id in due]
            self._close_started(self._opened(self._confined(waited, due)), dismissed)

    def _opened(self, attempts: Sequence[Claimed]) -> list[Claimed]:
        """Group by group: while the uids of one are stored the next one's pods are created, and
        the first gates open long before the last pod is born."""
        opening = []
        for group, born in self._born(self._prepare(attempts)):
            ready = self._known(group, born)
            opening.append((ready, self._calls.open(_pods(ready), born)))
        opened = []
        for ready, answers in opening:
            opened += self._sort_out(ready, answers(), hopeless=_HOPELESS_OPEN)
        return opened

    def _born(
        self, attempts: Sequence[Claimed]
    ) -> Iterator[tuple[Sequence[Claimed], Answers[PodReport]]]:
        """Each group with its pods; those of the next are under way by then."""
        coming: deque[tuple[Sequence[Claimed], Coming[PodReport]]] = deque()
        for group in batched(attempts, GROUP):
            coming.append((group, self._calls.create(_pods(group))))
            if len(coming) > 1:
                before, answers = coming.popleft()
                yield before, answers()
        for last, answers in coming:
            yield last, answers()

    def _known(self, attempts: Sequence[Claimed], born: Answers[PodReport]) -> list[Claimed]:
        """Those whose pods are all born and known, and which may be opened."""
        attempts = self._sort_out(attempts, born)
        crash("D3")
        attempts = self._note_uids(attempts, born)
        crash("D4")
        # Between creating and opening the workload may have been cancelled or preempted.
        mine = still_mine(attempts=attempts, token=self._token)
        let_go(attempts=[a.id for a in attempts if a.id not in mine], token=self._token)
        return [attempt for attempt in attempts if attempt.id in mine]

    def give_notice(self, attempts: Sequence[Claimed]) -> None:
        """Tell the pods until when they may run: their stop is due then, told or not."""
        for attempt in attempts:
            told = self._calls.tell(attempt.pods, attempt.notice_until or self._at())
            if failed := errors(attempt.pods, told):
                postpone(attempts=[attempt.id], why=str(failed[0]), token=self._token)
            else:
                close(attempts=[attempt.id], kinds=[OperationKind.NOTICE], token=self._token)

    def stop(self, attempts: Sequence[Claimed]) -> None:
        """Ask for the pods' end; what never came to be is settled at once."""
        done, never_born = self._end(attempts)
        with transaction.atomic():
            at = self._at()
            observe.record(facts=[_unborn(id, at) for id in never_born], at=at)
            settled = [attempt.id for attempt in done]
            lock(settled)
            settle.settle(attempts=settled, at=at)
            requeue.seen_gone(attempts=settled, at=at)
            close(attempts=settled, kinds=list(OperationKind), token=self._token)

    def _end(self, attempts: Sequence[Claimed]) -> tuple[list[Claimed], list[UUID]]:
        """Ask for the pods' end: the attempts where that worked for all, and the placements whose
        pods never came to be; the other attempts are postponed."""
        # Before any is deleted: once a pod is gone, only its uid says whose it was.
        uids = self._calls.uids(_pods(attempts))
        taken = store_uids(
            {id: uid for id, uid in _of(attempts, uids, str) if uid}, token=self._token
        )
        # Another placement's pod is not this one's to end, whatever its labels say.
        asked = self._calls.delete(_pods(attempts), {**uids, **dict.fromkeys(taken, "")})
        done = []
        for attempt in attempts:
            if failed := errors(attempt.pods, asked):
                postpone(attempts=[attempt.id], why=str(failed[0]), token=self._token)
            else:
                done.append(attempt)
        return done, [id for id, born in _of(done, asked, bool) if not born]

    def _confined(
        self, attempts: Sequence[Claimed], due: Mapping[UUID, confine.Due]
    ) -> list[Claimed]:
        """Have it applied for their projects, a wall that was raised too; those where that worked.
        The others are postponed: whatever it is, it is mended in the cluster or here, and no fault
        of the work's."""
        refused = confine.apply(
            calls=self._calls, cluster_id=self._cluster_id, due=due, at=self._at
        )
        for attempt in attempts:
            if error := refused.get(attempt.project_id):
                why = f"its project could not be confined there: {error}"
                logger.warning("attempt %s: %s: %s", attempt.id, error.fault, why)
                after_s = error.retry_after_s
                postpone(attempts=[attempt.id], why=why, token=self._token, after_s=after_s)
        return [attempt for attempt in attempts if attempt.project_id not in refused]

    def _prepare(self, attempts: Sequence[Claimed]) -> list[Claimed]:
        """Those whose services are there."""
        ready = []
        for attempt in attempts:
            try:
                self._calls.prepare(attempt)
                ready.append(attempt)
            except ClusterError as error:
                self._fail(attempt, error)
        return ready

    def _note_uids(self, attempts: Sequence[Claimed], born: Answers[PodReport]) -> list[Claimed]:
        """Store which pods are whose; the attempts, knowing it. A cluster that passes another's
        pod off as an attempt's harms that attempt alone."""
        uids = {id: report.uid for id, report in _of(attempts, born, PodReport)}
        taken = store_uids(uids, token=self._token)
        known = []
        for attempt in attempts:
            if taken.isdisjoint(pod.placement_id for pod in attempt.pods):
                pods = tuple(replace(pod, uid=uids[pod.placement_id]) for pod in attempt.pods)
                known.append(replace(attempt, pods=pods))
            else:
                why = "the cluster answered with a pod of another placement"
                self._give_up(attempt, why)
                postpone(attempts=[attempt.id], why=why, token=self._token)
        return known

    def _sort_out(
        self,
        attempts: Sequence[Claimed],
        answers: Answers[PodReport],
        *,
        hopeless: Collection[Fault] = _HOPELESS,
    ) -> list[Claimed]:
        """The attempts whose every pod answered well; the others are postponed or given up."""
        well = []
        for attempt in attempts:
            failed = errors(attempt.pods, answers)
            strangers = [
                pod
                for pod in attempt.pods
                if isinstance(answer := answers[pod.placement_id], PodReport)
                and pod.uid not in ("", answer.uid)
            ]
            if failed:
                # The worst decides: a hopeless pod makes the whole gang hopeless.
                worst = min(failed, key=lambda error: error.fault not in hopeless)
                self._fail(attempt, worst, hopeless=hopeless)
            elif strangers:
                self._replaced(attempt, strangers, answers)
            else:
                well.append(attempt)
        return well

    def _fail(
        self, attempt: Claimed, error: ClusterError, *, hopeless: Collection[Fault] = _HOPELESS
    ) -> None:
        logger.warning("attempt %s: %s: %s", attempt.id, error.fault, error)
        confine.doubt(
            cluster_id=self._cluster_id, project_id=attempt.project_id, fault=error.fault
        )
        if error.fault in hopeless:
            self._give_up(attempt, f"the cluster refused it: {error}")
        postpone(
            attempts=[attempt.id],
            why=str(error),
            token=self._token,
            after_s=error.retry_after_s,
        )

    def _replaced(
        self, attempt: Claimed, pods: Sequence[Pod], answers: Answers[PodReport]
    ) -> None:
        """Pods of theirs were deleted by somebody else: they are gone, and what was born in their
        place just now is never opened."""
        why = "a pod was replaced by another of its name"
        self._give_up(attempt, why, FailureClass.EVICTED)
        at = self._at()
        observe.record(
            facts=[
                observe.Fact(
                    pod.placement_id, ended_at=at, succeeded=False, reason=GONE, released=True
                )
                for pod in pods
            ],
            at=at,
        )
        shut = {
            pod.placement_id: answer.uid
            for pod in pods
            if isinstance(answer := answers[pod.placement_id], PodReport)
            and answer.phase is PodPhase.GATED
            and is_of(pod, answer)
        }
        self._calls.delete([pod for pod in pods if pod.placement_id in shut], shut)
        postpone(attempts=[attempt.id], why=why, token=self._token)

    def _give_up(
        self, attempt: Claimed, why: str, failure: FailureClass = FailureClass.REFUSED
    ) -> None:
        give_up(
            attempt_id=attempt.id,
            workload_id=attempt.workload_id,
            project_id=attempt.project_id,
            why=why,
            failure=failure,
            actor=ACTOR,
            at=self._at(),
        )

    def _close_started(self, attempts: Sequence[Claimed], dismissed: Sequence[UUID]) -> None:
        if not (attempts or dismissed):
            return
        at = self._at()
        with transaction.atomic():
            # Whoever took over from us, or saw the attempt end, has said what there is to say.
            mine = keep(attempts=attempts, token=self._token)
            attempts = [attempt for attempt in attempts if attempt.id in mine]
            crash("D6")
            transition(
                [Step(a.workload_id, a.project_id, State.ADMITTED, State.BOUND) for a in attempts],
                actor=ACTOR,
                actor_name="dispatcher",
                at=at,
            )
            mark_opened([pod.placement_id for pod in _pods(attempts)], at)
            close_started(
                attempts=[attempt.id for attempt in attempts],
                dismissed=dismissed,
                token=self._token,
            )


def _only(attempt: Claimed, pods: Iterable[Pod]) -> Claimed:
    return replace(attempt, pods=tuple(pods))


def _unborn(placement_id: UUID, at: datetime) -> observe.Fact:
    return observe.Fact(
        placement_id, ended_at=at, succeeded=False, reason=NEVER_STARTED, released=True
    )


def _pods(attempts: Sequence[Claimed]) -> list[Pod]:
    return [pod for attempt in attempts for pod in attempt.pods]


def _of[T](
    attempts: Sequence[Claimed], answers: Answers[T], kind: type[T]
) -> list[tuple[UUID, T]]:
    """These attempts' answers that are no errors, by placement."""
    return [
        (pod.placement_id, answer)
        for pod in _pods(attempts)
        if isinstance(answer := answers[pod.placement_id], kind)
    ]
