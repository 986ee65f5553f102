"""The caps of projects, of each submitter in one, and of arrays: how much runs at once; and, kept
beside them, budgets.

Counted is what holds capacity, and what a plan starts or lets wait for an eviction; slices and
shares count as the parts that they are of a device. A cap takes nothing back: one that was lowered
only keeps more from starting. Where there are none, they cost a look-up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from scheduler.core.bounds.budgets import Budgets, Workload
from scheduler.core.bounds.limits import because
from scheduler.core.plan import Place
from scheduler.core.quota.devices import Devices
from scheduler.core.quota.equivalents import PARTS
from scheduler.core.reasons import Cap, Reason, ReasonCode
from scheduler.core.request import Option
from scheduler.core.snapshot import CapsView, HeldView, HoldingView, PendingView, Snapshot
from scheduler.core.submitted import ArrayView
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
        self._devices = Devices(snapshot.flavors if self._of else ())
        self.budgets = Budgets(snapshot)
        self._of_array: Counter[ArrayId] = Counter()
        self._running: Counter[ProjectId] = Counter()
        self._user_running: Counter[_Submitter] = Counter()
        self._user_holds: Counter[_Submitter] = Counter()

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

    def may_hold(self, *, workload: Counted, amounts: Iterable[tuple[FlavorId, int]]) -> bool:
        """Whether its submitter may hold these thousandths of flavors more."""
        return self._passed(workload, self._devices.of(amounts)) is None

    def _move(self, sign: int, workload: Counted, holds: Sequence[Place | HeldView]) -> None:
        if workload.array is not None:
            self._of_array[workload.array.id] += sign
        project, user = workload.project, workload.user
        if project not in self._of:
            return
        self._running[project] += sign
        self._user_running[project, user] += sign
        amounts = ((holder.flavor, holder.amount_milli) for holder in holds)
        self._user_holds[project, user] += sign * self._devices.of(amounts)

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
        asked = self._devices.least(pending)
        return self._passed(pending, asked) or self.budgets.reached(pending)

    def lacks(self, *, pending: PendingView, option: Option) -> Reason | None:
        """The cap or budget that its least start would pass with the option; None when there is
        none. Who asks for memory holds more of one flavor than of another."""
        if pending.project in self._of:
            passed = self._passed(pending, self._devices.of(option.needs))
            if passed is not None:
                return passed
        return self.budgets.lacks(pending=pending, option=option)

    def _passed(self, workload: Counted, asked: int) -> Reason | None:
        """The cap on what its submitter holds, when so much more would pass it."""
        caps = self._of.get(workload.project)
        if caps is None or caps.user_gpus_milli is None or not asked:
            return None
        used = self._user_holds[workload.project, workload.user]
        if used + asked <= caps.user_gpus_milli * PARTS:
            return None
        return because(
            ReasonCode.CAP_REACHED,
            cap=Cap.USER_GPUS.value,
            asked_milli=-(-asked // PARTS),
            limit_milli=caps.user_gpus_milli,
            used_milli=-(-used // PARTS),
        )

    def narrow(self, *, pending: PendingView, option: Option, spare: dict[FlavorId, int]) -> None:
        """Leave in `spare` no more than its submitter may hold, and its budgets cover; for what
        lacks nothing with the option.

        The least start of each flavor stays; what is left beyond goes to the flavors in turn.
        """
        self.budgets.narrow(pending=pending, option=option, spare=spare)
        caps = self._of.get(pending.project)
        if caps is None or caps.user_gpus_milli is None:
            return
        held = self._user_holds[pending.project, pending.user]
        most = caps.user_gpus_milli * PARTS - held
        self._devices.narrow(needs=option.needs, most=most, spare=spare)
