"""Placements → cluster: carries out the outbox. No network inside a transaction, no decision.

An attempt is claimed whole, so start and stop of one gang never run at once. Starting is
two-phase: create every pod gated, store its uid, then open the gates; a pod whose uid is not
stored is never opened, so a retry or a late duplicate can't start work twice (P3).
"""

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from uuid import UUID, uuid4

from django.db import connection, transaction

from clusters.port import ClusterError, ClusterPort, Fault, PodPhase, PodReport
from controlplane.kernel.crash import crash
from scheduler.core.lifecycle import State
from scheduler.loop import observe
from scheduler.loop.claims import Claimed, Pod, claim, close, let_go, postpone, still_mine
from scheduler.loop.requests import pod_request, service_name
from scheduler.loop.retry import give_up
from scheduler.models import OperationKind
from scheduler.services.transition import Step, lock, transition

logger = logging.getLogger(__name__)

ACTOR = "system:dispatcher"
THREADS = 8
BATCH = 60
GRACE_S = 10
# What no retry can mend: the attempt is given up and the workload tried again from the start.
_HOPELESS = {Fault.INVALID, Fault.FORBIDDEN, Fault.CONFLICT}

NAMESPACE_S = 600.0
"""How long a namespace that was ensured is trusted to be there."""

type Answer = PodReport | ClusterError


def dispatch(*, port: ClusterPort, cluster_id: UUID, at: Callable[[], datetime]) -> int:
    """Carry out one batch of this cluster's due operations; how many attempts were taken on."""
    token = uuid4()
    claimed = claim(cluster_id=cluster_id, token=token, limit=BATCH)
    crash("D1")
    if not claimed:
        return 0
    with ThreadPoolExecutor(THREADS) as pool:
        hand = _Hand(port, cluster_id, pool, token, at)
        stops = [attempt for attempt in claimed if attempt.stopping]
        starts = [attempt for attempt in claimed if not attempt.stopping]
        hand.start(starts)
        hand.stop(stops)
    return len(claimed)


# When this process last ensured a namespace, by cluster and name.
_namespaces: dict[tuple[UUID, str], float] = {}


class _Hand:
    """One batch's way through the phases."""

    def __init__(
        self,
        port: ClusterPort,
        cluster_id: UUID,
        pool: ThreadPoolExecutor,
        token: UUID,
        at: Callable[[], datetime],
    ) -> None:
        self._port = port
        self._cluster_id = cluster_id
        self._down: ClusterError | None = None
        self._pool = pool
        self._token = token
        self._at = at

    def start(self, attempts: Sequence[Claimed]) -> None:
        attempts = self._prepare(attempts)
        born = self._all([pod for attempt in attempts for pod in attempt.pods], self._create)
        attempts = self._sort_out(attempts, born)
        crash("D3")
        _store_uids(
            {pod.placement_id: report.uid for pod, report in _reports(attempts, born)},
            token=self._token,
        )
        crash("D4")
        # Between creating and opening the workload may have been cancelled or preempted.
        mine = still_mine(attempts=attempts, token=self._token)
        let_go(attempts=[a.id for a in attempts if a.id not in mine], token=self._token)
        attempts = [attempt for attempt in attempts if attempt.id in mine]
        versions = {pod.placement_id: report for pod, report in _reports(attempts, born)}
        opened = self._all(
            [pod for attempt in attempts for pod in attempt.pods],
            lambda pod: self._open(pod, versions[pod.placement_id]),
        )
        attempts = self._sort_out(attempts, opened)
        self._close_started(attempts)

    def stop(self, attempts: Sequence[Claimed]) -> None:
        """Ask for the pods' end; what never came to be is settled at once."""
        pods = [pod for attempt in attempts for pod in attempt.pods]
        # Before any is deleted: once a pod is gone, only its uid says whose it was.
        uids = dict(
            zip((pod.placement_id for pod in pods), self._map(self._uid, pods), strict=True)
        )
        _store_uids(
            {id: uid for id, uid in uids.items() if isinstance(uid, str) and uid},
            token=self._token,
        )
        asked = self._map(lambda pod: self._delete(pod, uids[pod.placement_id]), pods)
        answers = {pod.placement_id: answer for pod, answer in zip(pods, asked, strict=True)}
        done, never_born = [], []
        for attempt in attempts:
            errors = [
                answer
                for pod in attempt.pods
                if isinstance(answer := answers[pod.placement_id], ClusterError)
            ]
            if errors:
                postpone(attempts=[attempt.id], why=str(errors[0]), token=self._token)
                continue
            done.append(attempt)
            never_born += [
                pod.placement_id for pod in attempt.pods if answers[pod.placement_id] is False
            ]
        with transaction.atomic():
            at = self._at()
            observe.record(
                facts=[
                    observe.Fact(
                        id, ended_at=at, succeeded=False, reason="NeverStarted", released=True
                    )
                    for id in never_born
                ],
                at=at,
            )
            observe.settle(attempts=[attempt.id for attempt in done], at=at)
            close(
                attempts=[attempt.id for attempt in done],
                kinds=[OperationKind.START, OperationKind.STOP],
                token=self._token,
            )

    # --- the calls, each for one pod ---

    def _create(self, pod: Pod) -> PodReport:
        report = self._port.create_pod(request=pod_request(pod))
        crash("D2")
        return report

    def _open(self, pod: Pod, born: PodReport) -> PodReport:
        if born.phase != PodPhase.GATED:
            return born  # opened by an earlier try
        report = self._port.open_gate(
            namespace=pod.namespace,
            name=pod.name,
            uid=born.uid,
            resource_version=born.resource_version,
            hostname=pod.hostname,
        )
        crash("D5")
        return report

    def _uid(self, pod: Pod) -> str:
        """ "" when the pod never was."""
        if pod.uid:
            return pod.uid
        found = self._port.read_pod(namespace=pod.namespace, name=pod.name)
        return "" if found is None else found.uid

    def _delete(self, pod: Pod, uid: str | ClusterError) -> bool:
        """False when the pod never was: nothing to wait for."""
        if isinstance(uid, ClusterError):
            raise uid
        if not uid:
            return False
        self._port.delete_pod(namespace=pod.namespace, name=pod.name, uid=uid, grace_s=GRACE_S)
        crash("E2")
        return True

    # --- helpers ---

    def _prepare(self, attempts: Sequence[Claimed]) -> list[Claimed]:
        """Namespaces and the gangs' services, before any pod."""
        ready = []
        for attempt in attempts:
            try:
                self._ensure_namespace(attempt.namespace)
                if len(attempt.pods) > 1:
                    self._ensure_service(attempt)
                ready.append(attempt)
            except ClusterError as error:
                self._fail(attempt, error)
        return ready

    def _ensure_namespace(self, name: str) -> None:
        key = self._cluster_id, name
        if time.monotonic() - _namespaces.get(key, -NAMESPACE_S) < NAMESPACE_S:
            return
        self._reach(lambda: self._port.ensure_namespace(name=name))
        _namespaces[key] = time.monotonic()

    def _ensure_service(self, attempt: Claimed) -> None:
        self._reach(
            lambda: self._port.ensure_service(
                namespace=attempt.namespace,
                name=service_name(attempt.workload_id),
                workload=str(attempt.workload_id),
            )
        )

    def _reach[T](self, call: Callable[[], T]) -> T:
        """The call, unless this batch has seen that the cluster can't be reached."""
        if self._down is not None:
            raise self._down
        try:
            return call()
        except ClusterError as error:
            if error.fault is Fault.UNREACHABLE:
                self._down = error
            raise

    def _map[T](self, call: Callable[[Pod], T], pods: Sequence[Pod]) -> list[T | ClusterError]:
        def safely(pod: Pod) -> T | ClusterError:
            try:
                return self._reach(lambda: call(pod))
            except ClusterError as error:
                return error

        return list(self._pool.map(safely, pods))

    def _all(self, pods: Sequence[Pod], call: Callable[[Pod], PodReport]) -> dict[UUID, Answer]:
        return {
            pod.placement_id: answer
            for pod, answer in zip(pods, self._map(call, pods), strict=True)
        }

    def _sort_out(self, attempts: Sequence[Claimed], answers: dict[UUID, Answer]) -> list[Claimed]:
        """The attempts whose every pod answered well; the others are postponed or given up."""
        well = []
        for attempt in attempts:
            errors = [
                answer
                for pod in attempt.pods
                if isinstance(answer := answers[pod.placement_id], ClusterError)
            ]
            strangers = [
                pod
                for pod in attempt.pods
                if isinstance(answer := answers[pod.placement_id], PodReport)
                and pod.uid not in ("", answer.uid)
            ]
            if errors:
                # The worst decides: a hopeless pod makes the whole gang hopeless.
                self._fail(attempt, min(errors, key=lambda error: error.fault not in _HOPELESS))
            elif strangers:
                self._replaced(attempt, strangers, answers)
            else:
                well.append(attempt)
        return well

    def _fail(self, attempt: Claimed, error: ClusterError) -> None:
        logger.warning("attempt %s: %s: %s", attempt.id, error.fault, error)
        if error.fault is Fault.NOT_FOUND:  # perhaps its namespace
            _namespaces.pop((self._cluster_id, attempt.namespace), None)
        if error.fault in _HOPELESS:
            self._give_up(attempt, f"the cluster refused it: {error}")
        postpone(
            attempts=[attempt.id],
            why=str(error),
            token=self._token,
            after_s=error.retry_after_s,
        )

    def _replaced(
        self, attempt: Claimed, pods: Sequence[Pod], answers: dict[UUID, Answer]
    ) -> None:
        """Pods of theirs were deleted by somebody else: they are gone, and what was born in their
        place just now is never opened."""
        why = "a pod was replaced by another of its name"
        self._give_up(attempt, why)
        at = self._at()
        observe.record(
            facts=[
                observe.Fact(
                    pod.placement_id, ended_at=at, succeeded=False, reason="PodGone", released=True
                )
                for pod in pods
            ],
            at=at,
        )
        for pod in pods:
            answer = answers[pod.placement_id]
            if isinstance(answer, PodReport) and answer.phase is PodPhase.GATED:
                with contextlib.suppress(ClusterError):
                    self._delete(pod, answer.uid)
        postpone(attempts=[attempt.id], why=why, token=self._token)

    def _give_up(self, attempt: Claimed, why: str) -> None:
        give_up(
            attempt_id=attempt.id,
            workload_id=attempt.workload_id,
            project_id=attempt.project_id,
            why=why,
            actor=ACTOR,
            at=self._at(),
        )

    def _close_started(self, attempts: Sequence[Claimed]) -> None:
        at = self._at()
        with transaction.atomic():
            lock([attempt.id for attempt in attempts])
            crash("D6")
            _mark_opened([pod.placement_id for a in attempts for pod in a.pods], at)
            transition(
                [Step(a.workload_id, a.project_id, State.ADMITTED, State.BOUND) for a in attempts],
                actor=ACTOR,
                actor_name="dispatcher",
                at=at,
            )
            close(
                attempts=[attempt.id for attempt in attempts],
                kinds=[OperationKind.START],
                token=self._token,
            )


def _reports(
    attempts: Sequence[Claimed], answers: dict[UUID, Answer]
) -> list[tuple[Pod, PodReport]]:
    return [
        (pod, answer)
        for attempt in attempts
        for pod in attempt.pods
        if isinstance(answer := answers[pod.placement_id], PodReport)
    ]


def _store_uids(uids: dict[UUID, str], *, token: UUID) -> None:
    """Only while the claim is ours and no other uid is stored."""
    if not uids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_placement p SET pod_uid = u.uid"
            " FROM unnest(%s::uuid[], %s::text[]) AS u(id, uid), scheduler_attempt a"
            " WHERE p.id = u.id AND p.pod_uid = '' AND a.id = p.attempt_id AND a.claim = %s",
            [list(uids), list(uids.values()), token],
        )


def _mark_opened(placements: Sequence[UUID], at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_placement SET opened_at = %s WHERE id IN ("
            " SELECT id FROM scheduler_placement WHERE id = ANY(%s) AND opened_at IS NULL"
            " AND pod_uid <> '' ORDER BY id FOR NO KEY UPDATE)",
            [at, list(placements)],
        )
