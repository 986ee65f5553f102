"""The caps of projects, of each submitter in one, and of arrays: how much runs at once; and, kept
beside them, budgets.

Counted is what holds capacity, and what a plan starts or lets wait for an eviction. A cap takes
nothing back: one that was lowered only keeps more from starting. Where there are none, they cost a
look-up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from scheduler.core.budgets import Budgets, Workload
from scheduler.core.limits import because
from scheduler.core.plan import Place
from scheduler.core.portions import portion_milli
from scheduler.core.quota import amount_milli
from scheduler.core.reasons import Cap, Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import (
    ArrayView,
    CapsView,
    FlavorKind,
    HeldView,
    HoldingView,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import ArrayId, FlavorId, ProjectId, UserId

type _Submitter = tuple[ProjectId, UserId]


class Counted(Workload, Protocol):
    """A workload, as far as caps look at it."""

    @property
    def user(self) -> UserId: ...
    @property
    def array(self) -> ArrayView | None: ...


class Caps:
    """Counts, moved as work starts and ends; `add` what runs before the first question."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._of: Mapping[ProjectId, CapsView] = {
            queue.project: queue.caps for queue in snapshot.queues if queue.caps is not None
        }
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        self.budgets = Budgets(snapshot)
        self._of_array: Counter[ArrayId] = Counter()
        self._running: Counter[ProjectId] = Counter()
        self._user_running: Counter[_Submitter] = Counter()
        self._user_milli: Counter[_Submitter] = Counter()

    @classmethod
    def running(cls, snapshot: Snapshot, *, arrays: Iterable[HoldingView] | None = None) -> "Caps":
        """With what holds in the snapshot; `arrays` are all elements of arrays there."""
        caps = cls(snapshot)
        limited = caps._of.keys() | caps.budgets.bound
        for held in snapshot.holding if limited or arrays is None else arrays:
            if held.array is not None or held.project in limited:
                caps.add(workload=held, holds=held.placements)
        return caps

    def add(self, *, workload: Counted, holds: Sequence[Place | HeldView]) -> None:
        """It holds these from now on."""
        self._move(1, workload, holds)
        self.budgets.add(workload=workload, holds=holds)

    def remove(self, *, workload: Counted, holds: Sequence[Place | HeldView]) -> None:
        """Take back what `add` put in."""
        self._move(-1, workload, holds)
        self.budgets.remove(workload=workload, holds=holds)

    def may_grow(self, *, workload: Counted, amount_milli: int) -> bool:
        """Whether its submitter may hold so many thousandths of devices more."""
        caps = self._of.get(workload.project)
        if caps is None or caps.user_gpus_milli is None:
            return True
        held = self._user_milli[workload.project, workload.user]
        return held + amount_milli <= caps.user_gpus_milli

    def _move(self, sign: int, workload: Counted, holds: Sequence[Place | HeldView]) -> None:
        if workload.array is not None:
            self._of_array[workload.array.id] += sign
        project, user = workload.project, workload.user
        if project not in self._of:
            return
        self._running[project] += sign
        self._user_running[project, user] += sign
        of_devices = sum(holder.amount_milli for holder in holds if holder.spans)
        self._user_milli[project, user] += sign * of_devices

    def reached(self, pending: PendingView) -> Reason | None:
        """The cap that its least start would pass whatever flavor it gets, with the numbers; None
        when there is none."""
        array = pending.array
        if array is not None and self._of_array[array.id] >= array.most_at_once:
            return because(
                ReasonCode.ARRAY_FULL,
                limit_count=array.most_at_once,
                used_count=self._of_array[array.id],
            )
        caps = self._of.get(pending.project)
        if caps is None:
            return self.budgets.reached(pending)
        submitter = pending.project, pending.user
        for cap, limit, used in (
            (Cap.RUNNING, caps.running, self._running[pending.project]),
            (Cap.USER_RUNNING, caps.user_running, self._user_running[submitter]),
        ):
            if limit is not None and used >= limit:
                return because(
                    ReasonCode.CAP_REACHED, cap=cap.value, limit_count=limit, used_count=used
                )
        asked = sum(p.min_count * self._least_milli(p) for p in pending.pod_sets if p.gpu_count)
        return self._passed(pending, asked) or self.budgets.reached(pending)

    def lacks(self, *, pending: PendingView, option: Option) -> Reason | None:
        """The cap or budget that its least start would pass with the option; None when there is
        none. Who asks for memory holds more of one flavor than of another."""
        if pending.project in self._of:
            passed = self._passed(pending, sum(asked for _, asked in _of_devices(option)))
            if passed is not None:
                return passed
        return self.budgets.lacks(pending=pending, option=option)

    def _passed(self, pending: PendingView, asked: int) -> Reason | None:
        limit = self._of[pending.project].user_gpus_milli
        used = self._user_milli[pending.project, pending.user]
        if limit is None or not asked or used + asked <= limit:
            return None
        return because(
            ReasonCode.CAP_REACHED,
            cap=Cap.USER_GPUS.value,
            asked_milli=asked,
            limit_milli=limit,
            used_milli=used,
        )

    def _least_milli(self, pod_set: PodSetView) -> int:
        """What one pod of it gets of the flavor that it takes least of."""
        asked_mib = pod_set.gpu_memory_mib
        if asked_mib is None:
            return amount_milli(pod_set=pod_set)
        known = (self._flavors[id] for id in pod_set.flavors if id in self._flavors)
        found = (portion_milli(gpu_memory_mib=asked_mib, flavor=flavor) for flavor in known)
        return min((milli for milli in found if milli is not None), default=0)

    def narrow(self, *, pending: PendingView, option: Option, spare: dict[FlavorId, int]) -> None:
        """Leave in `spare` no more than its submitter may hold, and its budgets cover; for what
        lacks nothing with the option.

        The least start of each flavor stays; what is left beyond goes to the flavors in turn.
        """
        self.budgets.narrow(pending=pending, option=option, spare=spare)
        caps = self._of.get(pending.project)
        if caps is None or caps.user_gpus_milli is None:
            return
        needs = _of_devices(option)
        more = caps.user_gpus_milli - self._user_milli[pending.project, pending.user]
        more -= sum(asked for _, asked in needs)
        for flavor, asked in needs:
            spare[flavor] = min(spare[flavor], asked + more)
            more -= spare[flavor] - asked


def _of_devices(option: Option) -> list[tuple[FlavorId, int]]:
    """What it needs of flavors that are devices."""
    devices = {flavor.id for flavor in option.flavors if flavor.kind is not FlavorKind.CPU}
    return [(flavor, asked) for flavor, asked in option.needs if flavor in devices]
