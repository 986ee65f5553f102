"""Less of something that a waiting workload asks for, of one pod set, with which it would start.

Each is tried by another plan (`relax`). Cores, memory and pods are searched for the most that
starts; of devices and parts of them halves are, as whoever has to split work over them would do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from scheduler.core.explaining.change import Change, Relaxation, Unit
from scheduler.core.explaining.whatif import Trials
from scheduler.core.placing.layouts import Groups
from scheduler.core.reasons import BINDS_CORES, BINDS_MEMORY
from scheduler.core.request import Request
from scheduler.core.snapshot import PendingView, PodSetView
from scheduler.core.units import ONE_MILLI

_PARTS = 16
"""Cores and memory of a pod are lowered by so many steps at most."""
_HALVES = 3
"""So often devices and parts of them are halved."""


class Smaller:
    """Of one workload and its request."""

    def __init__(self, trials: Trials, pending: PendingView, request: Request) -> None:
        self._trials = trials
        self._pending = pending
        self._largest_first = [pending.pod_sets[i] for i in request.order]

    def run(self, numbers: Mapping[str, int | str], *, devices: bool) -> Iterator[Relaxation]:
        """`numbers` are those of the reason for which it waits. Fewer or smaller devices are tried
        where it lacks `devices`, or quota for them."""
        yield from self._size(numbers)
        yield from self._pods()
        if devices:
            yield from self._gpus()
            yield from self._share()

    def _size(self, numbers: Mapping[str, int | str]) -> Iterator[Relaxation]:
        """Where cores or memory bind: as much of it a pod as starts, by sixteenths."""
        binds = numbers.get("binds")
        if binds not in (BINDS_CORES, BINDS_MEMORY):
            return
        told = numbers["pod_cpu_milli"], numbers["pod_memory_mib"]
        pod = next(p for p in self._pending.pod_sets if (p.cpu_milli, p.memory_mib) == told)

        def less(parts: int) -> PodSetView:
            if binds == BINDS_CORES:
                return replace(pod, cpu_milli=max(1, pod.cpu_milli * parts // _PARTS))
            return replace(pod, memory_mib=max(1, pod.memory_mib * parts // _PARTS))

        most = self._trials.most(1, _PARTS - 1, lambda parts: self._with(less(parts)))
        if most is None:
            return
        smaller = less(most)
        if binds == BINDS_CORES:
            yield Relaxation(Change.CORES, pod.cpu_milli, smaller.cpu_milli, Unit.MILLI, pod.id)
        else:
            yield Relaxation(
                Change.MEMORY, pod.memory_mib, smaller.memory_mib, Unit.MEBIBYTES, pod.id
            )

    def _pods(self) -> Iterator[Relaxation]:
        """Of the largest pods that are several, in no groups: with as many of them as start."""
        sets = self._largest_first
        pod = next((p for p in sets if p.min_count > 1 and Groups.of(p).number == 1), None)
        if pod is None:
            return
        most = self._trials.most(
            1, pod.min_count - 1, lambda count: self._with(replace(pod, min_count=count))
        )
        if most is not None:
            yield Relaxation(Change.PODS, pod.min_count, most, Unit.COUNT, pod.id)

    def _gpus(self) -> Iterator[Relaxation]:
        """Fewer devices, or slices, for each pod of the first set, largest first, of which that
        helps."""
        for pod in self._largest_first:
            counts = _halves(pod.gpu_count)
            asks = [replace(pod, gpu_count=count) for count in counts]
            if (nth := self._most(asks)) is not None:
                yield Relaxation(Change.GPUS, pod.gpu_count, counts[nth], Unit.COUNT, pod.id)
                return

    def _share(self) -> Iterator[Relaxation]:
        """A smaller part of a device likewise, in thousandths or by memory, as it is asked for."""
        for pod in self._largest_first:
            memory_mib = pod.gpu_memory_mib
            if memory_mib is not None:
                old, unit, parts = memory_mib, Unit.MEBIBYTES, _halves(memory_mib)
                asks = [replace(pod, gpu_memory_mib=part) for part in parts]
            elif pod.gpu_milli < ONE_MILLI:
                old, unit, parts = pod.gpu_milli, Unit.MILLI, _halves(pod.gpu_milli)
                asks = [replace(pod, gpu_milli=part) for part in parts]
            else:
                continue
            if (nth := self._most(asks)) is not None:
                yield Relaxation(Change.SHARE, old, parts[nth], unit, pod.id)
                return

    def _most(self, asks: Sequence[PodSetView]) -> int | None:
        """The number of the last of them, of which each asks for more, with which it starts."""
        most = len(asks) - 1
        return self._trials.most(0, most, lambda nth: self._with(asks[nth])) if asks else None

    def _with(self, pod_set: PodSetView) -> PendingView:
        return with_pod_set(self._pending, pod_set)


def with_pod_set(pending: PendingView, pod_set: PodSetView) -> PendingView:
    """The workload with this instead of the pod set of that id."""
    pod_sets = tuple(pod_set if p.id == pod_set.id else p for p in pending.pod_sets)
    return replace(pending, pod_sets=pod_sets)


def _halves(amount: int) -> list[int]:
    """The least first."""
    halves = (amount >> times for times in range(_HALVES, 0, -1))
    return [half for half in halves if half]
