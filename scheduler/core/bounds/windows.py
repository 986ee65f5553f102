"""Reservations: an amount of a flavor that is kept for a project, or for a cohort with all below
it, from one moment to another.

At each moment that what starts now may still run, the flavor has to have free, or given back by
then for certain, what its reservations lack: what is reserved, less what those for whom it is hold
of it. They add up, also those of a project and of the cohorts above it: what a project holds
counts towards its own first, only what is beyond that towards the nearest above it that has one,
and so on. Only work that ends by its own run-time limit is sure to give back; work without one is
taken to run for ever, and minds windows from their `binds_at` on alone: one that is far ahead does
not keep it waiting till then. Amounts are kept, not nodes, over all clusters; nothing that runs is
stopped.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli
from scheduler.core.plan import Place
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Request
from scheduler.core.snapshot import (
    FlavorView,
    HeldView,
    HoldingView,
    PendingView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import CohortId, DeviceId, FlavorId, NodeId, ProjectId

type Owner = tuple[ProjectId | None, CohortId | None]
"""Whom something is reserved for: one of the two."""
type Run = tuple[ProjectId, Sequence[Place | HeldView], int | None]
"""Who holds what, and when that ends by its run-time limit."""


@dataclass(slots=True)
class _Moment:
    """When a window opens, or now if it has; sums in thousandths of the flavor.

    `reserved` then, by owner, and what each of those `held` then still, with what those below it
    hold beyond theirs; `back_milli` is what all give back by then that others may have.
    """

    at: int
    flavor: FlavorView
    binds: bool
    reserved: Mapping[Owner, int]
    held: dict[Owner, int]
    back_milli: int = 0

    @property
    def wanted_milli(self) -> int:
        """What is reserved, less what those for whom it is hold of it."""
        held = self.held
        return sum([max(0, amount - held[of]) for of, amount in self.reserved.items()])

    def count(self, owners: Iterable[Owner], amount: int) -> None:
        """So much more is held for these, the nearest first, or less of it: what is beyond what is
        reserved for one is for the next."""
        for of in owners:
            kept = self.reserved.get(of)
            if kept is not None:
                before = self.held[of]
                after = self.held[of] = before + amount
                amount = max(after, kept) - max(before, kept)


class Windows:
    """The reservations of a snapshot, and what is held of them; asked before and after a workload
    is put into a draft. False without reservations."""

    def __init__(self, *, snapshot: Snapshot, holding: Iterable[HoldingView]) -> None:
        """`holding` hold something from now on. No more of the draft is asked than what is free,
        so it has to have the same in it."""
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        self._reservations: tuple[ReservationView, ...] = tuple(
            each for each in snapshot.reservations if each.flavor in self._flavors
        )
        self.promised: tuple[Draft, Windows] | None = None  # once what others wait for is theirs
        self._owners = _owners(snapshot) if self._reservations else {}
        self._now = snapshot.at
        self._open(snapshot.at)
        self._there = _there(snapshot) if self else frozenset[NodeId | DeviceId]()
        for each in holding if self else ():
            self._count(each.project, each.placements, self._end_of_run(each), 1)

    def __bool__(self) -> bool:
        return bool(self._moments)

    def started(self, *, workload: PendingView | HoldingView, places: Sequence[Place]) -> None:
        """It holds these from now on, for all of its run-time limit."""
        if self:
            self._count(workload.project, places, self._end_of(workload), 1)

    def left(self, *, holding: HoldingView, placements: Sequence[HeldView]) -> None:
        """It holds these no longer."""
        self._count(holding.project, placements, self._end_of_run(holding), -1)

    def copy(self) -> "Windows":
        """For the caller to tell what starts or leaves only there."""
        made = copy(self)
        made._set(tuple(replace(each, held=dict(each.held)) for each in self._moments))
        if self.promised is not None:
            draft, windows = self.promised
            made.promised = draft, windows.copy()
        return made

    def then(self, *, at: int, runs: Iterable[Run]) -> "Windows":
        """At that moment, when only these run."""
        made = copy(self)
        made.promised = None
        made._open(at)
        for project, places, ends_at in runs if made else ():
            made._count(project, places, ends_at, 1)
        return made

    def runs_into(self, *, pending: PendingView, request: Request) -> bool:
        """Whether it may still run when hardware that it may get is reserved, unless all of that
        is of the flavor that is, for its own project or one above it."""
        ends_at = self._end_of(pending)
        flavors = {flavor for option in request.options for flavor in option.flavors}
        models, ids = {flavor.model for flavor in flavors}, {flavor.id for flavor in flavors}
        own = self._owners.get(pending.project, ())
        return any(
            ((window.project, window.cohort) not in own or ids != {window.flavor})
            and self._flavors[window.flavor].model in models | {""}
            and (window.binds_at <= self._at if ends_at is None else ends_at > window.starts_at)
            for window in self._windows
        )

    def lacking(self, *, draft: Draft) -> Sequence[int]:
        """At each moment the flavor's thousandths that its reservations would lack; negative, what
        they would leave."""
        clusters = draft.clusters
        free = {
            id: sum([free_milli(draft=draft, cluster=c, flavor=of[0].flavor) for c in clusters])
            for id, of in self._by_flavor.items()
        }
        return [m.wanted_milli - m.back_milli - free[m.flavor.id] for m in self._moments]

    def reason(
        self,
        *,
        draft: Draft,
        pending: PendingView,
        places: Sequence[Place],
        before: Sequence[int],
    ) -> Reason | None:
        """Why it may not start at `places`, where the draft has it already; None when it may.

        `before` is what was `lacking` without it: what lacks no more with it is not its fault. The
        same is asked of the fleet as it is `promised`.
        """
        if not self:
            return None
        ends_at = self._end_of(pending)
        self._count(pending.project, places, ends_at, 1)
        reason = self._first_reason(draft, before, by_limit=ends_at is not None)
        self._count(pending.project, places, ends_at, -1)
        if reason is None and self.promised is not None:
            soon, windows = self.promised
            reason = windows.why_not(draft=soon, pending=pending, places=places)
        return reason

    def why_not(
        self, *, draft: Draft, pending: PendingView, places: Sequence[Place]
    ) -> Reason | None:
        """As `reason`, where the draft has it not yet. The draft is left as it was."""
        mark, before = draft.checkpoint(), self.lacking(draft=draft)
        for place in places:
            draft.add(project=pending.project, holder=place)
        reason = self.reason(draft=draft, pending=pending, places=places, before=before)
        draft.rollback(mark)
        return reason

    def gain_nothing(self, *, holding: HoldingView, placements: Iterable[HeldView]) -> bool:
        """Whether some reservation has nothing of it if it leaves: it would have given that back
        in time, or holds it for whom it is reserved."""
        ends_at, own = self._end_of_run(holding), self._owners.get(holding.project, ())
        return any(
            (ends_at is not None and ends_at <= moment.at)
            or any(of in moment.reserved for of in own)
            for placement in placements
            for moment in self._by_flavor.get(placement.flavor, ())
        )

    def _open(self, at: int) -> None:
        """Those that are not over by then, and nobody holds anything."""
        self._at = at
        self._windows = tuple(each for each in self._reservations if each.ends_at > at)
        bind = {(max(at, w.starts_at), w.flavor) for w in self._windows if w.binds_at <= at}
        moments = sorted({(max(at, w.starts_at), w.flavor) for w in self._windows})
        self._set(
            tuple(
                _Moment(
                    when, self._flavors[flavor], (when, flavor) in bind, reserved,
                    dict.fromkeys(reserved, 0),
                )
                for when, flavor in moments
                for reserved in [self._reserved(when, flavor)]
            )
        )  # fmt: skip

    def _set(self, moments: tuple[_Moment, ...]) -> None:
        self._moments = moments
        self._by_flavor: dict[FlavorId, list[_Moment]] = {}
        for moment in moments:
            self._by_flavor.setdefault(moment.flavor.id, []).append(moment)

    def _reserved(self, when: int, flavor: FlavorId) -> dict[Owner, int]:
        found: dict[Owner, int] = {}
        for window in self._windows:
            if window.flavor == flavor and window.starts_at <= when < window.ends_at:
                of = window.project, window.cohort
                found[of] = found.get(of, 0) + window.amount_milli
        return found

    def _count(
        self,
        project: ProjectId,
        holds: Iterable[Place | HeldView],
        ends_at: int | None,
        sign: int,
    ) -> None:
        """That it holds these, or no longer. What is held where nothing new starts gives nothing
        back that others could have."""
        own = self._owners.get(project, ())
        for each in holds:
            moments = self._by_flavor.get(each.flavor)
            if moments is None:
                continue
            amount = sign * each.amount_milli
            back = 0 if ends_at is None or not self._is_there(each) else amount
            for moment in moments:
                if ends_at is not None and ends_at <= moment.at:
                    moment.back_milli += back
                else:
                    moment.count(own, amount)

    def _is_there(self, holder: Place | HeldView) -> bool:
        return {holder.node, *(device for device, _ in holder.spans)} <= self._there

    def _first_reason(
        self, draft: Draft, before: Sequence[int], *, by_limit: bool
    ) -> Reason | None:
        """The first moment at which more is lacking than before: of all for what ends by its
        limit, else of those that bind."""
        for moment, lacked, lacks in zip(
            self._moments, before, self.lacking(draft=draft), strict=True
        ):
            if (by_limit or moment.binds) and lacks > max(0, lacked):
                numbers = (  # by name, as in every reason
                    ("flavor", moment.flavor.name),
                    ("kept_milli", moment.wanted_milli),
                    ("lacking_milli", lacks),
                    ("opens_in_s", moment.at - self._now),
                )
                return Reason(ReasonCode.RESERVED, numbers)
        return None

    def _end_of(self, workload: PendingView | HoldingView) -> int | None:
        """If it starts now."""
        limit_s = workload.run_time_limit_s
        return None if limit_s is None else self._at + limit_s

    def _end_of_run(self, holding: HoldingView) -> int | None:
        """As it runs, or is about to."""
        limit_s = holding.run_time_limit_s
        since = self._at if holding.started_at is None else holding.started_at
        return None if limit_s is None else max(self._at + 1, since + limit_s)


def _owners(snapshot: Snapshot) -> Mapping[ProjectId, Sequence[Owner]]:
    """Of each project who of itself and those above it has reservations, the nearest first."""
    reserving = {(window.project, window.cohort) for window in snapshot.reservations}
    parents = {cohort.id: cohort.parent for cohort in snapshot.cohorts}
    found: dict[ProjectId, list[Owner]] = {}
    for queue in snapshot.queues:
        path: list[Owner] = [(queue.project, None)]
        above = queue.cohort
        while above is not None:
            path.append((None, above))
            above = parents.get(above)
        if own := [of for of in path if of in reserving]:
            found[queue.project] = own
    return found


def _there(snapshot: Snapshot) -> frozenset[NodeId | DeviceId]:
    """Nodes and devices that take new work."""
    return frozenset(_taking(snapshot))


def _taking(snapshot: Snapshot) -> Iterator[NodeId | DeviceId]:
    for cluster in snapshot.clusters:
        for node in cluster.nodes if cluster.usable else ():
            if node.usable:
                yield node.id
                yield from (device.id for device in node.devices if device.usable)
