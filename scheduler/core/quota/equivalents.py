"""What whole devices, slices and shares count of the quota over all of their model.

Such a quota is one of a flavor of kind MODEL, which nobody can ask for. Its unit is a seventh of a
device, so that its thousandths are exact for every share and every slice: a device is 7,000, 1g of
a seven-slice board 1,000, an eighth of the memory 875, a thousandth of a device 7.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler.core.node import mig
from scheduler.core.snapshot import FlavorKind, FlavorView, HoldingView, QueueView
from scheduler.core.units import ONE_MILLI, FlavorId, ProjectId

DEVICE_MILLI = 7 * ONE_MILLI
"""One device, in thousandths of a flavor of kind MODEL."""
PARTS = DEVICE_MILLI // ONE_MILLI
"""Sevenths of a device, in thousandths of which devices are counted: exact for every slice and
share."""


def counts_milli(*, kind: FlavorKind, model: str, profile: str) -> int:
    """What one whole unit of such a flavor counts of its model, in thousandths of a seventh.

    A slice counts as the part of the device that it takes from others: the larger one of its
    compute and its memory. One that is not known counts as a device; cores count 0, and so does
    what is a quota of the model itself.
    """
    if kind in (FlavorKind.CPU, FlavorKind.MODEL):
        return 0
    part = mig.device_equivalent(model=model, profile=profile) if profile else None
    return DEVICE_MILLI if part is None else int(part * DEVICE_MILLI)


def each_counts(flavors: Iterable[FlavorView]) -> dict[FlavorId, int]:
    """What a whole unit of each of them counts."""
    return {
        flavor.id: counts_milli(kind=flavor.kind, model=flavor.model, profile=flavor.profile)
        for flavor in flavors
    }


@dataclass(frozen=True, slots=True)
class Part:
    """`milli` of the flavor `whole`, of kind MODEL, for each whole unit."""

    whole: FlavorId
    milli: int

    def of(self, amount_milli: int) -> int:
        """Exact: slices are charged whole, and all else counts 7 for each thousandth."""
        return amount_milli * self.milli // ONE_MILLI

    def within(self, whole_milli: int) -> int:
        """The most of the flavor that counts no more than that, in its thousandths."""
        return whole_milli * ONE_MILLI // self.milli


class Parts:
    """By flavor, for the projects that have a quota of the model: no other is counted there.
    `counts` is what a whole unit of each flavor counts, whoever has a quota of what."""

    __slots__ = ("_bound", "_of", "counts")
    __hash__ = None  # type: ignore[assignment]  # compared, never a key

    def __init__(self, *, flavors: Iterable[FlavorView], queues: Iterable[QueueView]) -> None:
        flavors = tuple(flavors)
        wholes = {f.model: f.id for f in flavors if f.kind is FlavorKind.MODEL}
        self.counts: Mapping[FlavorId, int] = each_counts(flavors)
        self._of: dict[FlavorId, Part] = {}
        for flavor in flavors if wholes else ():
            milli = self.counts[flavor.id]
            if milli and flavor.model in wholes:
                self._of[flavor.id] = Part(wholes[flavor.model], milli)
        self._bound: dict[ProjectId, frozenset[FlavorId]] = {}
        ids = set(wholes.values())
        for queue in queues if ids else ():
            if bound := ids.intersection(quota.flavor for quota in queue.quotas):
                self._bound[queue.project] = frozenset(bound)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts) and (
            (self._of, self._bound, self.counts) == (other._of, other._bound, other.counts)
        )

    def bound(self, *, project: ProjectId) -> frozenset[FlavorId]:
        """The models of which the project has a quota."""
        return self._bound.get(project, frozenset())

    def known(self, *, flavor: FlavorId) -> Part | None:
        """As `of`, for a project that has a quota of each model."""
        return self._of.get(flavor)

    def of(self, *, project: ProjectId, flavor: FlavorId) -> Part | None:
        """None when the flavor counts of no quota of the project over a model."""
        part = self._of.get(flavor)
        return part if part is not None and part.whole in self.bound(project=project) else None

    def charges(
        self, *, project: ProjectId, flavor: FlavorId, amount_milli: int
    ) -> tuple[tuple[FlavorId, int], ...]:
        """All that such an amount is charged to, in thousandths of each."""
        part = self.of(project=project, flavor=flavor)
        if part is None:
            return ((flavor, amount_milli),)
        return (flavor, amount_milli), (part.whole, part.of(amount_milli))

    def sums(self, *, holding: HoldingView) -> dict[FlavorId, int]:
        """All that it is charged to, in thousandths of each."""
        found: dict[FlavorId, int] = {}
        for placement in holding.placements:
            found[placement.flavor] = found.get(placement.flavor, 0) + placement.amount_milli
        bound = self._bound.get(holding.project)
        return found | self.needs(bound=bound, needs=found) if bound else found

    def needs(
        self, *, bound: frozenset[FlavorId], needs: Mapping[FlavorId, int]
    ) -> dict[FlavorId, int]:
        """What those amounts count of the `bound` models."""
        found: dict[FlavorId, int] = {}
        for flavor, asked in needs.items():
            part = self._of.get(flavor)
            if part is not None and part.whole in bound:
                found[part.whole] = found.get(part.whole, 0) + part.of(asked)
        return found

    def narrow(
        self,
        *,
        project: ProjectId,
        needs: Iterable[tuple[FlavorId, int]],
        spare: dict[FlavorId, int],
    ) -> None:
        """Leave in `spare` no more of each flavor than its model's quota takes.

        The least start, `needs`, stays; what is left beyond goes to the flavors in turn.
        """
        asked = dict(needs)
        for flavor, least in asked.items():
            part = self.of(project=project, flavor=flavor)
            if part is None:
                continue
            more = spare[part.whole] - asked[part.whole]
            spare[flavor] = min(spare[flavor], least + part.within(more))
            spare[part.whole] -= part.of(spare[flavor] - least)
