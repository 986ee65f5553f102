"""Reservations: an amount of a flavor that is kept for a project from one moment to another.

At each moment that what starts now may still run, the flavor has to have free, or given back by
then for certain, what its reservations lack: what is reserved, less what their projects hold of
it. Only work that ends by its own run-time limit is sure to give back; work without one is taken
to run for ever, and minds windows from their `binds_at` on alone: one that is far ahead does not
keep it waiting till then. Amounts are kept, not nodes, over all clusters; nothing that runs is
stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from scheduler.core.draft import Draft
from scheduler.core.limits import because
from scheduler.core.plan import Place
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Request
from scheduler.core.snapshot import HeldView, PendingView, ReservationView, Snapshot
from scheduler.core.space import free_milli
from scheduler.core.units import DeviceId, FlavorId, NodeId, ProjectId

type _Moment = tuple[int, FlavorId]


@dataclass(frozen=True, slots=True)
class _Held:
    project: ProjectId
    flavor: FlavorId
    amount_milli: int
    ends_at: int | None
    back_milli: int
    """What another may have of it once it has ended: nothing where nothing new starts."""


class Windows:
    """Asked before and after a workload is put into the draft; false without reservations."""

    def __init__(self, *, snapshot: Snapshot) -> None:
        self._at = snapshot.at
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        self._windows: tuple[ReservationView, ...] = tuple(
            window
            for window in snapshot.reservations
            if window.ends_at > snapshot.at and window.flavor in self._flavors
        )
        self._moments: tuple[_Moment, ...] = tuple(
            sorted({(max(self._at, w.starts_at), w.flavor) for w in self._windows})
        )
        self._bind: frozenset[_Moment] = frozenset(
            (max(self._at, w.starts_at), w.flavor) for w in self._windows if w.binds_at <= self._at
        )
        there = _there(snapshot) if self._windows else frozenset[NodeId | DeviceId]()
        self._held: list[_Held] = []
        for holding in snapshot.holding if self._windows else ():
            since = self._at if holding.started_at is None else holding.started_at
            limit_s = holding.run_time_limit_s
            ends_at = None if limit_s is None else max(self._at + 1, since + limit_s)
            self._held += _held(holding.project, holding.placements, ends_at, there)

    def __bool__(self) -> bool:
        return bool(self._windows)

    def started(self, *, pending: PendingView, places: Sequence[Place]) -> None:
        """It holds these from now on."""
        if self._windows:
            self._held += _held(pending.project, places, self._end_of(pending))

    def copy(self) -> "Windows":
        """For the caller to tell what starts only there."""
        made = copy(self)
        made._held = list(self._held)
        return made

    def runs_into(self, *, pending: PendingView, request: Request) -> bool:
        """Whether it may still run when hardware that it may get is reserved, unless all of that
        is of the flavor that is, for its own project."""
        ends_at = self._end_of(pending)
        flavors = {flavor for option in request.options for flavor in option.flavors}
        models, ids = {flavor.model for flavor in flavors}, {flavor.id for flavor in flavors}
        return any(
            (window.project != pending.project or ids != {window.flavor})
            and self._flavors[window.flavor].model in models | {""}
            and (window.binds_at <= self._at if ends_at is None else ends_at > window.starts_at)
            for window in self._windows
        )

    def lacking(self, *, draft: Draft) -> Mapping[_Moment, int]:
        """At each moment, the flavor's thousandths that its reservations would lack."""
        return {
            (moment, flavor): self._lacking(draft, moment, flavor, self._held)
            for moment, flavor in self._moments
        }

    def reason(
        self,
        *,
        draft: Draft,
        pending: PendingView,
        places: Sequence[Place],
        before: Mapping[_Moment, int],
    ) -> Reason | None:
        """Why it may not start at `places`, where the draft has it already; None when it may.

        `before` is what was lacking without it: what lacks no more with it is not its fault.
        """
        ends_at = self._end_of(pending)
        held = [*self._held, *_held(pending.project, places, ends_at)]
        for moment, flavor in self._moments:
            if ends_at is None and (moment, flavor) not in self._bind:
                continue
            lacking = self._lacking(draft, moment, flavor, held)
            if lacking > max(0, before[moment, flavor]):
                return because(
                    ReasonCode.RESERVED,
                    flavor=self._flavors[flavor].name,
                    kept_milli=self._wanted(moment, flavor, held),
                    lacking_milli=lacking,
                    opens_in_s=moment - self._at,
                )
        return None

    def _end_of(self, pending: PendingView) -> int | None:
        limit_s = pending.run_time_limit_s
        return None if limit_s is None else self._at + limit_s

    def _lacking(self, draft: Draft, moment: int, flavor: FlavorId, held: Sequence[_Held]) -> int:
        view = self._flavors[flavor]
        free = sum(free_milli(draft=draft, cluster=c, flavor=view) for c in draft.clusters)
        back = sum(
            each.back_milli
            for each in held
            if each.flavor == flavor and each.ends_at is not None and each.ends_at <= moment
        )
        return self._wanted(moment, flavor, held) - free - back

    def _wanted(self, moment: int, flavor: FlavorId, held: Sequence[_Held]) -> int:
        """What is reserved then, less what those for whom it is hold of it then."""
        reserved: dict[ProjectId, int] = {}
        for window in self._windows:
            if window.flavor == flavor and window.starts_at <= moment < window.ends_at:
                reserved[window.project] = reserved.get(window.project, 0) + window.amount_milli
        for each in held:
            lasts = each.ends_at is None or each.ends_at > moment
            if each.flavor == flavor and each.project in reserved and lasts:
                reserved[each.project] -= each.amount_milli
        return sum(max(0, amount) for amount in reserved.values())


def _held(
    project: ProjectId,
    holds: Iterable[Place | HeldView],
    ends_at: int | None,
    there: frozenset[NodeId | DeviceId] | None = None,
) -> list[_Held]:
    """`there` is what takes new work; None for what is placed there just now."""
    found = []
    for each in holds:
        uses = {each.node, *(device for device, _ in each.spans)}
        lost = there is not None and not uses <= there
        amount = each.amount_milli
        found.append(_Held(project, each.flavor, amount, ends_at, 0 if lost else amount))
    return found


def _there(snapshot: Snapshot) -> frozenset[NodeId | DeviceId]:
    """Nodes and devices that take new work. What is held on others, or on those that the snapshot
    lacks, gives nothing back that anybody could have."""
    found: set[NodeId | DeviceId] = set()
    for cluster in snapshot.clusters:
        for node in cluster.nodes if cluster.usable else ():
            if node.usable:
                found.add(node.id)
                found.update(device.id for device in node.devices if device.usable)
    return frozenset(found)
