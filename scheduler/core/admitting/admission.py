"""Can this workload start now, and if not, why? What plan, dry run and estimate share."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from scheduler.core.admitting.choice import Chosen, choose, told
from scheduler.core.admitting.claims import Claims
from scheduler.core.admitting.coming import Coming
from scheduler.core.admitting.kept_quota import KeptQuota
from scheduler.core.admitting.outage import Outage
from scheduler.core.bounds import firm
from scheduler.core.bounds.caps import Caps
from scheduler.core.bounds.limits import Limits, because, room_numbers, why_no_fit
from scheduler.core.bounds.windows import Windows
from scheduler.core.evicting.preempt import Evictions
from scheduler.core.fleet.draft import Draft
from scheduler.core.held.elastic import is_elastic
from scheduler.core.memory import Memory
from scheduler.core.placing.place import price_of, would_place
from scheduler.core.plan import Admit, Choice, Landing, PassedFor, Place
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import BORROWED, guarantor, of_round, tier_of
from scheduler.core.quota.share import Shares
from scheduler.core.reasons import Reason, ReasonCode, listed
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import FlavorId, ProjectId

_NOTHING: Mapping[FlavorId, int] = {}


class Admission:
    """Starts workloads in `draft`, one after another, each where it fits best.

    `promised`, when there is one, has what others wait for: nothing may start against its quota.
    `windows` are those of what is in the draft. What is `kept` of a quota who comes later leaves.
    """

    def __init__(
        self,
        *,
        snapshot: Snapshot,
        draft: Draft,
        shares: Shares,
        caps: Caps,
        windows: Windows,
        memory: Memory | None = None,
    ) -> None:
        self.draft = draft
        self.caps = caps
        self.windows = windows
        self._reserved: dict[tuple[ProjectId, Request], Reason] = {}
        self.promised: Draft | None = None
        self.kept = KeptQuota(at=snapshot.at)
        self.tier = BORROWED
        self._snapshot = snapshot
        self._shares = shares
        self._limits = Limits(snapshot, memory or Memory())
        self._outage = Outage(snapshot, draft)
        self.coming = Coming(snapshot, draft)
        self._full: dict[Option, Reason | None] = {}
        self.claims = Claims()

    def expect(self, evictions: Evictions) -> None:
        """From now on quotas and reservations are asked of what these expect, too."""
        self.promised = evictions.soon
        self.windows.promised = evictions.soon, evictions.windows

    def reopen(self) -> None:
        """Capacity has come free: what did not fit may fit now."""
        self._full.clear()
        self.claims.clear()
        self._reserved.clear()

    def begin(self, *, tier: int) -> None:
        """A round of the tier (`guarantees.tiers`)."""
        self.tier = tier
        self.claims.begin(tier=tier)

    def is_full(self, *, option: Option) -> bool:
        """Whether there was no room for the option."""
        return option in self._full

    def fill(self, *, option: Option) -> None:
        """There was no room for it when it was tried elsewhere."""
        self._full.setdefault(option)

    def hope(self, *, option: Option) -> bool | None:
        """Whether the hardware could ever hold the option; None when nobody asked yet."""
        return self._limits.known(option=option)

    def has_hope(self, *, option: Option) -> None:
        """The hardware could hold it, as was found elsewhere."""
        self._limits.learn(option=option)

    def of_tier(self, *, pending: PendingView, request: Request) -> tuple[Option, ...]:
        """The options of the round's tier, and of those before it, that caps and budgets allow."""
        lacks = self.caps.lacks
        covered = [o for o in request.options if lacks(pending=pending, option=o) is None]
        covered = [o for o in covered if self._why_kept(pending, o) is None]
        if self.tier == BORROWED:
            return tuple(covered)
        return tuple(o for o in covered if self._tier(pending, o) >= self.tier)

    def is_open(self, *, pending: PendingView, request: Request) -> bool:
        """Whether neither a cap nor a reservation keeps it from all options."""
        is_reserved = (pending.project, request) in self._reserved
        return not is_reserved and self.caps.reached(pending) is None

    def claim(self, *, pending: PendingView, request: Request) -> None:
        """It did not start within a guarantee: what comes behind it in its project waits."""
        if not self.is_open(pending=pending, request=request):
            return
        for option in request.options:
            if not self.is_hopeless(pending=pending, request=request, option=option):
                self.claims.add(pending, option.flavors)

    def start(self, *, pending: PendingView, request: Request) -> Admit | None:
        """Start it in the draft with the first option `of_tier` that fits, or, of those of one
        rank, the cheapest; None when none does."""
        if self.caps.reached(pending) is not None:
            return None
        passed: dict[Option, PassedFor] = {}
        for option in self._in_turn(pending, request, passed):
            spare = self._spare(pending, option)
            if spare is None:
                passed[option] = PassedFor.LIMIT
                continue
            if is_elastic(pending):
                self._narrow(pending, option, spare)
            self.caps.narrow(pending=pending, option=option, spare=spare)
            self.draft.book.parts.narrow(project=pending.project, needs=option.needs, spare=spare)
            mark, before = self.draft.checkpoint(), self.windows.lacking(draft=self.draft)
            found = self._choose(pending, request, option, spare)
            if found is None:
                self._full[option] = None
                passed[option] = PassedFor.ROOM
                continue
            reserved = self.windows.reason(
                draft=self.draft, pending=pending, places=found.places, before=before
            )
            if reserved is not None and len(found.places) > sum(
                s.min_count for s in pending.pod_sets
            ):
                self.draft.rollback(mark)
                found = self._choose(pending, request, option, dict(option.needs)) or found
                reserved = self.windows.reason(
                    draft=self.draft, pending=pending, places=found.places, before=before
                )
            if reserved is None:
                choice = told(request=request, option=option, offers=found.offers, passed=passed)
                self._commit(pending, found.places)
                return Admit(pending.id, found.cluster, found.places, choice)
            self.draft.rollback(mark)
            passed[option] = PassedFor.RESERVED
            self.reserve(pending=pending, request=request, reason=reserved)
        return None

    def _choose(
        self, pending: PendingView, request: Request, option: Option, spare: dict[FlavorId, int]
    ) -> Chosen | None:
        return choose(
            clusters=self._snapshot.clusters,
            draft=self.draft,
            pending=pending,
            request=request,
            option=option,
            spare=spare,
        )

    def reserve(self, *, pending: PendingView, request: Request, reason: Reason) -> None:
        """What it lacks is kept for others: that is why it waits, whatever the option."""
        self._reserved[pending.project, request] = reason

    def _in_turn(
        self, pending: PendingView, request: Request, passed: dict[Option, PassedFor]
    ) -> Iterator[Option]:
        """The options of the round that are not known to be full: by rank, then by price. Why the
        others are not goes into `passed`."""

        def is_left(option: Option) -> bool:
            if option in self._full:
                passed[option] = PassedFor.ROOM
            elif self.tier != BORROWED and self._tier(pending, option) < self.tier:
                passed[option] = PassedFor.GUARANTEE
            return option not in passed

        left = filter(is_left, request.options)

        def price(option: Option) -> int:
            return price_of(draft=self.draft, pending=pending, request=request, option=option)

        for _, alike in groupby(left, key=attrgetter("rank")):
            found = list(alike)
            yield from sorted(found, key=price) if len(found) > 1 else found

    def why_none(self, *, pending: PendingView, request: Request) -> Reason | None:
        """Why `start` gave None just now, whatever the option; None when that depends on it."""
        capped = self.caps.reached(pending)
        if capped is None and self._reserved:
            return self._reserved.get((pending.project, request))
        return capped

    def why_not(self, *, pending: PendingView, request: Request, option: Option) -> Reason:
        """Why `start` passed over the option just now."""
        reason = self._why_no_quota(pending, option) or self._full.get(option)
        if reason is None:
            reason = self._full[option] = self._why_no_room(pending, request, option)
        return reason

    def has_quota(self, *, pending: PendingView, option: Option) -> bool:
        """Whether the quota, caps and budgets left are enough for the least start."""
        return self._spare(pending, option) is not None

    def has_room(self, *, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether the least start fits into the draft as it is."""
        return any(would_place(draft=self.draft, pending=pending, request=request, option=option))

    def guarantor(
        self,
        *,
        pending: PendingView,
        option: Option,
        gives_way: Mapping[FlavorId, int] = _NOTHING,
    ) -> int:
        """Who guarantees it the option, once what is leaving has left and `gives_way` of its
        project's use; FLEET when nobody does (see `guarantees`), or it is not its turn (`claims`).
        """
        if self.claims.is_behind(pending, option):
            return FLEET
        return guarantor(
            self.draft.book, project=pending.project, needs=option.needs, gives_way=gives_way
        )

    def late(self, *, pending: PendingView, option: Option) -> int | None:
        """Of one that was behind in the round of its own guarantee: within which member others may
        come up before it in this round, so that who was evicted there would start again first."""
        if not self.claims.was_behind(pending, option):
            return None
        return of_round(self.tier, cohorts=self.draft.book.cohorts, project=pending.project)

    def _tier(self, pending: PendingView, option: Option) -> int:
        found = self.guarantor(pending=pending, option=option)
        return tier_of(self.draft.book.cohorts, project=pending.project, guarantor=found)

    def is_hopeless(self, *, pending: PendingView, request: Request, option: Option) -> bool:
        """Whether neither quota nor hardware could ever hold it."""
        for flavor, asked in option.needs:
            most = firm.most_milli(self.draft.book, pending=pending, flavor=flavor)
            if most is None or asked > most:
                return True
        known = self._limits.of_capacity(pending=pending, request=request, option=option)
        return known is not None

    def _narrow(self, pending: PendingView, option: Option, spare: dict[FlavorId, int]) -> None:
        """More pods than the least start are of what is guaranteed to it: what it borrows for them
        waits until all others have had their turn (`grow`)."""
        book, by = self.draft.book, self.guarantor(pending=pending, option=option)
        number = book.cohorts.number.get(pending.project, FLEET)
        nth = len(book.cohorts.paths[number]) - len(book.cohorts.paths[by])
        for flavor, asked in option.needs:
            room = asked if by == FLEET else book.ledger(flavor).rooms(number)[nth]
            spare[flavor] = min(spare[flavor], room)

    def available(self, project: ProjectId, flavor: FlavorId) -> int | None:
        """What is left now, and once what others wait for is theirs; None without a quota."""
        available = self.draft.book.available(project=project, flavor=flavor)
        if self.promised is None or available is None:
            return available
        promised = self.promised.book.available(project=project, flavor=flavor)
        return min(available, promised or 0)

    def _spare(self, pending: PendingView, option: Option) -> dict[FlavorId, int] | None:
        """The quota left per flavor; None when that, a cap or a budget is not enough for the
        least start."""
        if self.caps.lacks(pending=pending, option=option) is not None:
            return None
        spare: dict[FlavorId, int] = {}
        for flavor, asked in option.needs:
            available = self.available(pending.project, flavor)
            if available is None:
                return None
            available -= self.kept.amount(pending, flavor)
            if available < asked:
                return None
            spare[flavor] = available
        if pending.preemptible:
            return spare
        return firm.narrowed(spare, drafts=self.drafts, pending=pending, option=option)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """As it is now, and once what others wait for is theirs."""
        return (self.draft,) if self.promised is None else (self.draft, self.promised)

    def started(self, *, pending: PendingView, places: tuple[Place, ...]) -> None:
        """It was put into the draft, and charged."""
        self.caps.add(workload=pending, holds=places)
        self.windows.started(workload=pending, places=places)

    def start_at(self, *, pending: PendingView, landing: Landing) -> Admit:
        """Start it in the draft where its landing says, without asking."""
        for place in landing.places:
            self.draft.add(project=pending.project, holder=place)
        self._commit(pending, landing.places)
        return Admit(pending.id, landing.cluster, landing.places, Choice(kept=True))

    def _commit(self, pending: PendingView, places: tuple[Place, ...]) -> None:
        self.started(pending=pending, places=places)
        for place in places:
            self._shares.charge(
                project=pending.project, flavor=place.flavor, amount_milli=place.amount_milli
            )

    def _why_no_quota(self, pending: PendingView, option: Option) -> Reason | None:
        book, project = self.draft.book, pending.project
        reason = self.caps.lacks(pending=pending, option=option)
        if reason is None and not pending.preemptible:
            reason = firm.why_not(drafts=self.drafts, pending=pending, option=option)
        if reason is not None:
            return reason
        for flavor, asked in option.needs:
            available = self.available(project, flavor)
            if available is not None and available >= asked:
                continue
            nominal, limit, ceiling, used = book.bounds(project=project, flavor=flavor)
            code = ReasonCode.COHORT_USED
            if asked > ceiling:
                code = ReasonCode.NEVER_ADMISSIBLE
            elif limit is not None and used + asked > nominal + limit:
                code = ReasonCode.QUOTA_USED
            numbers = (  # by name, as in every reason; told of thousands of classes in a plan
                ("asked_milli", asked),
                ("available_milli", max(0, available or 0)),
                ("borrowable_milli", max(0, ceiling - nominal)),
                ("flavor", self.draft.flavors[flavor].name),
                ("nominal_milli", nominal),
                ("used_milli", used),
            )
            return Reason(code, numbers)
        return self._why_kept(pending, option)

    def _why_kept(self, pending: PendingView, option: Option) -> Reason | None:
        return self.kept.why_not(
            pending=pending, option=option, left=self.available, flavors=self.draft.flavors
        )

    def _why_no_room(self, pending: PendingView, request: Request, option: Option) -> Reason:
        if not any(request.accepts(cluster) for cluster in self.draft.clusters):
            return self._why_no_cluster(request)
        hopeless = self._limits.of_capacity(pending=pending, request=request, option=option)
        if hopeless is not None:
            return hopeless
        numbers = room_numbers(draft=self.draft, pending=pending, request=request, option=option)
        out = self._outage.why(pending=pending, request=request, option=option)
        if out is None or out.code is not ReasonCode.HARDWARE_HELD:
            comes = self.coming.why(pending=pending, request=request, option=option)
            out = comes or out
        if out is not None:
            return because(out.code, **numbers | dict(out.numbers))
        if int(numbers["free_milli"]) < int(numbers["asked_milli"]):
            return because(ReasonCode.NO_FREE_CAPACITY, **numbers)
        numbers |= why_no_fit(draft=self.draft, pending=pending, request=request, option=option)
        return because(ReasonCode.NO_FIT, **numbers)

    def _why_no_cluster(self, request: Request) -> Reason:
        accepted = [one for one in self._snapshot.clusters if request.accepts(one.id)]
        if not accepted:
            return because(ReasonCode.NO_MATCHING_FLAVOR, clusters_count=0)
        held = sorted(cluster.name for cluster in accepted if cluster.held)
        if held:
            return because(ReasonCode.HARDWARE_HELD, held=listed(f"cluster {one}" for one in held))
        return because(ReasonCode.CLUSTER_UNAVAILABLE, clusters_count=len(accepted))
