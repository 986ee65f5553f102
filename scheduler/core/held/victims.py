"""Who may be evicted for whom, and how much harm that does.

PRIORITY: preemptible work of lower priority in the same project. RECLAIM: preemptible work of
another project, over what is guaranteed to it and to those above it, in a flavor that the workload
asks for (`guarantees`). Neither takes work that has not yet run for the least time its project
grants it. Pods beyond the least of their set go by themselves, by the same rules, whether or not
their workload may be evicted.

Harm, least first: such pods before whole workloads, borrowers before the project's own work, lower
priority, less work lost since the last checkpoint (of a slice, the part that it is of a device),
fewer pods. Of a gang that goes as a whole all counts.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduler.core.held import losses
from scheduler.core.held.elastic import keeping, staying
from scheduler.core.plan import Place
from scheduler.core.quota.equivalents import DEVICE_MILLI, PARTS, Parts
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import HeldView, HoldingView
from scheduler.core.units import ONE_MILLI, FlavorId, NodeId, PlacementId, WorkloadId

Cost = tuple[int, int, int, int]
"""Its kind (0: pods of a borrower, 1: own pods, 2: a borrower, 3: own work), its priority, its
loss in thousandths of devices x seconds, its pods."""

UnitId = tuple[WorkloadId, PlacementId]
"""Of what goes as one: a pod by itself, or a workload, for which the second is ALL."""
ALL = PlacementId("")

Order = tuple[bool, int, int, int, int, UnitId]


class Held:
    """Work that may be evicted, or one pod of it that may go. `amounts` is what it gives back,
    thousandths by flavor, models too; `order`, once it is settled, has the least harm first,
    whosever work it is. `pods`, `sevenths_milli` (what would be lost each second, in thousandths
    of a seventh of a device) and `order` are as before any pod was lost.

    A pod is in `whole`, where that may go too, until it has been taken from it (`lose`).
    """

    __slots__ = (
        *("_at", "_devices", "_parts", "_rank", "amounts", "holding", "id", "is_whole", "on"),
        *("order", "placements", "pods", "sevenths_milli", "whole"),
    )

    def __init__(
        self,
        holding: HoldingView,
        *,
        parts: Parts,
        pod: HeldView | None = None,
        whole: "Held | None" = None,
    ) -> None:
        self.holding = holding
        self.is_whole = pod is None
        self.whole = whole
        self.id: UnitId = holding.id, ALL if pod is None else pod.id
        self.placements = placements = staying(holding) if pod is None else (pod,)
        self._parts = parts
        self.sevenths_milli = weight_milli(placements, parts=parts)
        self.pods = len(placements)
        self._rank = 0 if pod is None else pod.rank
        self._at: int | None = None
        self._devices: dict[FlavorId, int] | None = None
        self.order: Order
        self.amounts = parts.sums(holding=keeping(holding, placements))
        self.on: dict[NodeId, tuple[HeldView, ...]] = {}
        for placement in placements:
            node = placement.node
            self.on[node] = (*self.on[node], placement) if node in self.on else (placement,)

    def settle(self, at: int) -> None:
        """Set the order as it is at that moment, and was before any pod was lost."""
        if self._at != at:
            of, self._at = self.holding, at
            lost = losses.lost_milli_s(
                sevenths_milli=self.sevenths_milli,
                started_at=of.started_at,
                checkpointed_at=of.checkpointed_at,
                at=at,
            )
            self.order = self.is_whole, of.priority, lost, self.pods, -self._rank, self.id

    @property
    def devices(self) -> Mapping[FlavorId, int]:
        """By flavor: how many devices it holds something of, or more. Found when first asked."""
        if self._devices is None:
            self._devices = {}
            for placement in self.placements:
                before = self._devices.get(placement.flavor, 0)
                self._devices[placement.flavor] = before + len(placement.spans)
        return self._devices

    def given_milli(self, node: NodeId) -> int:
        """What of what would be lost it holds there, in thousandths of a seventh of a device."""
        return weight_milli(self.on[node], parts=self._parts)

    def is_in(self, gone: Container[UnitId]) -> bool:
        """Whether it is among those gone, by itself or with its workload."""
        return self.id in gone or (self.whole is not None and self.whole.id in gone)

    def lose(self, pod: "Held") -> None:
        """The pod has gone by itself."""
        self._devices = None
        self.placements = tuple(p for p in self.placements if p not in pod.placements)
        for node, gone in pod.on.items():
            self.on[node] = tuple(p for p in self.on[node] if p not in gone)
        for flavor, amount in pod.amounts.items():
            self.amounts[flavor] -= amount

    def regain(self, pod: "Held") -> None:
        """Undo `lose`."""
        self._devices = None
        self.placements = (*self.placements, *pod.placements)
        for node, back in pod.on.items():
            self.on[node] = (*self.on[node], *back)
        for flavor, amount in pod.amounts.items():
            self.amounts[flavor] += amount


def weight_milli(held: Iterable[HeldView | Place], *, parts: Parts) -> int:
    """What would be lost of it each second, in thousandths of a seventh: of devices, or of cores
    where it has none."""
    counts, held = parts.counts, tuple(held)
    devices = sum([p.amount_milli * counts.get(p.flavor, DEVICE_MILLI) for p in held if p.spans])
    return devices // ONE_MILLI or sum([p.amount_milli * PARTS for p in held])


class Victim(NamedTuple):
    """Someone who may be evicted for a workload, or a pod that may go for it, by a rule."""

    held: Held
    rule: PreemptRule
    cost: Cost

    @classmethod
    def of(cls, held: Held, rule: PreemptRule) -> "Victim":
        """Who has been settled."""
        _, priority, lost_milli_s, pods, *_ = held.order
        if rule is PreemptRule.CONSOLIDATE:
            priority = 0  # it goes on elsewhere, whatever comes before it
        kind = 2 * held.is_whole + (rule is PreemptRule.PRIORITY)
        return cls(held, rule, (kind, priority, lost_milli_s, pods))

    @property
    def id(self) -> UnitId:
        return self.held.id


def harm(victim: Victim) -> tuple[Cost, UnitId]:
    """Sorts the least harm first; of equal ones by id."""
    return victim.cost, victim.id


def in_sum(some: Iterable[Held]) -> dict[FlavorId, int]:
    """What they give back, thousandths by flavor."""
    found: dict[FlavorId, int] = {}
    for held in some:
        for flavor, amount in held.amounts.items():
            found[flavor] = found.get(flavor, 0) + amount
    return found


def cost_of(victims: Sequence[Victim]) -> Cost:
    """Of some victims, one at least: the worst of their kinds, and what they lose in sum."""
    costs = [victim.cost for victim in victims]
    kind, priority = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
    return kind, priority, loss_milli_s(victims), sum(cost[3] for cost in costs)


def loss_milli_s(victims: Iterable[Victim]) -> int:
    """What they lose in sum, as each one's cost says."""
    return sum(victim.cost[2] for victim in victims)


def is_protected(*, holding: HoldingView, min_run_time_s: int, at: int) -> bool:
    """Whether it has not run as long as it is granted."""
    ran_s = max(0, at - begun_at(holding))  # rounded seconds: it may begin after `at`
    return ran_s < min_run_time_s


def begun_at(holding: HoldingView) -> int:
    """From when on it runs. Work that has not begun counts from its admission, or what never
    begins would be protected for ever."""
    return holding.admitted_at if holding.started_at is None else holding.started_at
