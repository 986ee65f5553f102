"""One batch's calls to its cluster, several pods at a time.

No database in here: the calls run in threads, and a thread's connection would be nobody's to
close. An answer is what the call returned or the ClusterError it raised.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from clusters.confinement import Confinement, Drift, Repair
from clusters.port import ClusterError, ClusterPort, Fault, PodPhase, PodReport
from controlplane.kernel.crash import crash
from scheduler.loop.pods.claims import Claimed, Pod
from scheduler.loop.pods.requests import differs, given_devices, is_gang, pod_request, service_name
from scheduler.loop.reach import Reach

THREADS = 8
TRIES = 4
"""How often a pod is taken, or its gate opened, in one batch while others change it."""

type Answers[T] = Mapping[UUID, T | ClusterError]
"""By placement."""

type Coming[T] = Callable[[], Answers[T]]
"""Answers to calls that are under way; to call it waits for them."""


class Batch(NamedTuple):
    """How many were taken on, and whether the cluster could be reached for them all."""

    taken: int
    reached: bool


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="calls")


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """This process's, kept from batch to batch: to start them costs as much as the calls for some
    pods. After an error none of them asks any more."""
    pool = _threads()
    try:
        yield pool
    except BaseException:
        _threads.cache_clear()
        pool.shutdown(cancel_futures=True)
        raise


class Calls:
    """After the first call that could not reach the cluster, the others fail at once.

    `alive` is called, in the caller's thread, whenever some calls have been answered.
    """

    def __init__(
        self,
        port: ClusterPort,
        pool: ThreadPoolExecutor,
        alive: Callable[[], None],
    ) -> None:
        self._port = port
        self._pool = pool
        self._alive = alive
        self._reach = Reach()

    @property
    def reached(self) -> bool:
        return self._reach.reached

    def confine[K](
        self, asked: Mapping[K, tuple[Confinement, Repair]]
    ) -> Mapping[K, tuple[Drift, ...] | ClusterError]:
        """What was found not to be as wanted, by their keys."""
        return self.each(
            {
                key: partial(self._port.confine, wanted=wanted, repair=repair)
                for key, (wanted, repair) in asked.items()
            }
        )

    def prepare(self, attempt: Claimed) -> None:
        """Its gang's service, before any of its pods. Raises ClusterError."""
        self._alive()
        # Whoever made a gang's pods has them find each other.
        pod = next((p for p in attempt.pods if is_gang(p.most) and not p.caught), None)
        if pod is not None:
            self._reach.call(
                lambda: self._port.ensure_service(
                    namespace=pod.namespace,
                    name=service_name(pod.workload_id, pod.attempt),
                    workload=str(pod.workload_id),
                    attempt=pod.attempt,
                )
            )

    def create(self, pods: Sequence[Pod]) -> Coming[PodReport]:
        return self._begin(_by_placement(pods, self._create))

    def open(self, pods: Sequence[Pod], born: Answers[PodReport]) -> Coming[PodReport]:
        def open_one(pod: Pod) -> PodReport:
            return self._open(pod, _told(born[pod.placement_id]))

        return self._begin(_by_placement(pods, open_one))

    def uids(self, pods: Sequence[Pod]) -> Answers[str]:
        """As they are known, else as the cluster tells; "" for a pod that never was. One of its
        name that is another's is nobody's to end."""
        return self._each(pods, self._uid)

    def tell(self, pods: Sequence[Pod], until: datetime) -> Answers[None]:
        """Give those that were born notice."""
        return self._each(
            [pod for pod in pods if pod.uid],
            lambda pod: self._port.give_notice(
                namespace=pod.namespace, name=pod.name, uid=pod.uid, until=until
            ),
        )

    def delete(self, pods: Sequence[Pod], uids: Answers[str]) -> Answers[bool]:
        """Ask for their end; False for a pod that never was: nothing to wait for."""
        return self._each(pods, lambda pod: self._delete(pod, _told(uids[pod.placement_id])))

    def _create(self, pod: Pod) -> PodReport:
        if pod.displaced:
            # Not CONFLICT, which is hopeless: a driver that begins anew is silent for a while.
            why = f"The devices of {pod.hostname} are not told as when {pod.name} was placed."
            raise ClusterError(Fault.SERVER, why)
        report = self._take(pod) if pod.caught else self._port.create_pod(request=pod_request(pod))
        if pod.requests and report.phase is PodPhase.GATED:
            given = given_devices(pod, report)
            report = replace(report, resource_version=self._port.give_devices(given=given))
        crash("D2")
        return report

    def _take(self, pod: Pod) -> PodReport:
        """The pod that others made for it, with the labels of ours."""
        for _ in range(TRIES):
            read = self._port.read_pod
            found = read(namespace=pod.namespace, name=pod.name) if pod.taken else None
            if found is None or found.uid != pod.taken:
                raise ClusterError(Fault.NOT_FOUND, f"the pod for rank {pod.rank} is gone")
            if is_of(pod, found):
                return found
            if found.phase is not PodPhase.GATED:
                raise ClusterError(Fault.INVALID, f"somebody else opened the gate of {pod.name}")
            if problem := differs(pod, found):
                raise ClusterError(Fault.INVALID, problem)
            try:
                return self._port.adopt_pod(
                    pod=found, workload=str(pod.workload_id), attempt=pod.attempt, rank=pod.rank
                )
            except ClusterError as error:
                if error.fault is not Fault.CONFLICT:
                    raise
        # Not CONFLICT, which is hopeless: others change a pod of theirs as they like.
        raise ClusterError(Fault.SERVER, f"others keep changing the pod {pod.name}")

    def _open(self, pod: Pod, born: PodReport) -> PodReport:
        uid = born.uid
        for left in reversed(range(TRIES)):
            if born.phase is not PodPhase.GATED or born.uid != uid:
                break  # opened by an earlier try, or replaced
            try:
                born = self._port.open_gate(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=uid,
                    resource_version=born.resource_version,
                    hostname=pod.hostname,
                )
            except ClusterError as error:
                if error.fault is not Fault.CONFLICT or not left:
                    raise
                found = self._port.read_pod(namespace=pod.namespace, name=pod.name)
                if found is None:
                    raise ClusterError(Fault.NOT_FOUND, f"pod {pod.name} is gone") from error
                born = found
            else:
                crash("D5")
                break
        return born

    def _uid(self, pod: Pod) -> str:
        if pod.uid:
            return pod.uid
        found = self._port.read_pod(namespace=pod.namespace, name=pod.name)
        if found is None or not is_of(pod, found):
            return ""
        # Others' is free for the next attempt: none is opened before its uid is stored (P3).
        return "" if pod.caught and found.phase is PodPhase.GATED else found.uid

    def _delete(self, pod: Pod, uid: str) -> bool:
        if not uid:
            return False
        self._port.delete_pod(namespace=pod.namespace, name=pod.name, uid=uid, grace_s=pod.grace_s)
        crash("E2")
        return True

    def each[K, T](self, asked: Mapping[K, Callable[[], T]]) -> Mapping[K, T | ClusterError]:
        """What these calls answered, by their keys."""
        return self._begin(asked)()

    def _each[T](self, pods: Sequence[Pod], call: Callable[[Pod], T]) -> Answers[T]:
        return self.each(_by_placement(pods, call))

    def _begin[K, T](
        self, asked: Mapping[K, Callable[[], T]]
    ) -> Callable[[], Mapping[K, T | ClusterError]]:
        """Have them asked in their order; the answers, for which whoever wants them waits."""

        def safely(call: Callable[[], T]) -> T | ClusterError:
            try:
                return self._reach.call(call)
            except ClusterError as error:
                return error

        asking = {key: self._pool.submit(safely, call) for key, call in asked.items()}

        def answers() -> Mapping[K, T | ClusterError]:
            found = {}
            for key, answer in asking.items():
                found[key] = answer.result()
                self._alive()
            return found

        return answers


def _by_placement[T](
    pods: Sequence[Pod], call: Callable[[Pod], T]
) -> Mapping[UUID, Callable[[], T]]:
    return {pod.placement_id: partial(call, pod) for pod in pods}


def _told[T](answer: T | ClusterError) -> T:
    """Raises the error that an earlier call for this pod got."""
    if isinstance(answer, ClusterError):
        raise answer
    return answer


def is_of(pod: Pod, report: PodReport) -> bool:
    """The report is of this very pod by its labels, whatever its name and uid."""
    return (report.installation, report.workload, report.attempt, report.rank) == (
        settings.BERTH_INSTALLATION,
        str(pod.workload_id),
        pod.attempt,
        pod.rank,
    )


def errors[T](pods: Sequence[Pod], answers: Answers[T]) -> list[ClusterError]:
    """What went wrong for these pods."""
    return [
        answer for pod in pods if isinstance(answer := answers.get(pod.placement_id), ClusterError)
    ]
