"""What could ever start, whatever is free now: asked at submission, and to say why work waits."""

from scheduler.core import draft as drafts
from scheduler.core.draft import Draft
from scheduler.core.place import clusters_for, free_milli, largest_free_milli, place_gang
from scheduler.core.reasons import Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import PendingView, Snapshot

HOPELESS = frozenset(
    {ReasonCode.NEVER_ADMISSIBLE, ReasonCode.NO_MATCHING_FLAVOR, ReasonCode.EXCEEDS_CAPACITY}
)
"""Reasons that no release of capacity takes away."""


def never_admissible(snapshot: Snapshot, pending: PendingView) -> Reason | None:
    """Why the workload could not start even in an idle fleet, every node well; None if it could.

    For the moment of submission: what gets a reason here would wait until hardware or quota
    change. With several accepted flavors it is the reason of the most preferred one that exists.
    """
    return Limits(snapshot).reason(pending)


def most_useful(reasons: list[Reason]) -> Reason:
    """Of one reason per option, in order of preference, the one to tell: the first with hope."""
    for reason in reasons:
        if reason.code not in HOPELESS:
            return reason
    for reason in reasons:
        if reason.code is not ReasonCode.NO_MATCHING_FLAVOR:
            return reason
    return reasons[0] if reasons else Reason(ReasonCode.NO_MATCHING_FLAVOR)


def because(code: ReasonCode, **numbers: int | str) -> Reason:
    return Reason(code, tuple(sorted(numbers.items())))


class Limits:
    """The fleet with nothing in it; built when first asked, and kept for many questions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._requests = Requests(flavors={flavor.id: flavor for flavor in snapshot.flavors})
        self._empty: Draft | None = None
        self._known: dict[Option, Reason | None] = {}

    @property
    def empty(self) -> Draft:
        if self._empty is None:
            self._empty = drafts.empty(snapshot=self._snapshot)
        return self._empty

    def reason(self, pending: PendingView) -> Reason | None:
        """As `never_admissible`."""
        request = self._requests.of(pending)
        reasons = []
        for option in request.options:
            reason = self.of_capacity(pending=pending, request=request, option=option)
            reason = reason or self.of_quota(pending=pending, option=option)
            if reason is None:
                return None
            reasons.append(reason)
        return most_useful(reasons)

    def of_capacity(
        self, *, pending: PendingView, request: Request, option: Option
    ) -> Reason | None:
        """Why the option could not be placed in the empty fleet."""
        if option not in self._known:
            self._known[option] = self._of_capacity(pending, request, option)
        return self._known[option]

    def of_quota(self, *, pending: PendingView, option: Option) -> Reason | None:
        """Why the option could not be charged if nobody else used anything."""
        book, project = self.empty.book, pending.project
        for flavor, asked in option.needs:
            ceiling = book.ceiling(project=project, flavor=flavor)
            if ceiling is None or asked > ceiling:
                nominal = book.nominal(project=project, flavor=flavor)
                return because(
                    ReasonCode.NEVER_ADMISSIBLE,
                    asked_milli=asked,
                    borrowable_milli=max(0, (ceiling or 0) - nominal),
                    flavor=self.empty.flavors[flavor].name,
                    nominal_milli=nominal,
                )
        return None

    def _of_capacity(
        self, pending: PendingView, request: Request, option: Option
    ) -> Reason | None:
        draft = self.empty
        clusters = clusters_for(draft=draft, request=request, option=option)
        for flavor in option.flavors:
            if not any(
                largest_free_milli(draft=draft, cluster=cluster, flavor=flavor)
                for cluster in clusters
            ):
                return because(ReasonCode.NO_MATCHING_FLAVOR, flavor=flavor.name)
        for cluster in clusters:
            mark = draft.checkpoint()
            placed = place_gang(
                draft=draft,
                pending=pending,
                request=request,
                option=option,
                cluster=cluster,
                spare={},
            )
            draft.rollback(mark)
            if placed is not None:
                return None
        numbers = room_numbers(draft=draft, pending=pending, request=request, option=option)
        return because(ReasonCode.EXCEEDS_CAPACITY, **numbers)


def room_numbers(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> dict[str, int | str]:
    """What the least start asks of its scarcest flavor, and the most that a cluster has of it."""
    clusters = clusters_for(draft=draft, request=request, option=option)
    kinds = {flavor.id: flavor for flavor in option.flavors}
    free = {
        flavor.id: max(free_milli(draft=draft, cluster=c, flavor=flavor) for c in clusters)
        for flavor in kinds.values()
    }
    _, scarce, asked = min((free[flavor] - asked, flavor, asked) for flavor, asked in option.needs)
    flavor = kinds[scarce]
    pod = max(
        (p for p, f in zip(pending.pod_sets, option.flavors, strict=True) if f.id == scarce),
        key=lambda p: (p.gpu_count * p.gpu_milli, p.cpu_milli, p.memory_mib),
    )
    return {
        "asked_milli": asked,
        "flavor": flavor.name,
        "free_milli": free[scarce],
        "largest_free_milli": max(
            largest_free_milli(draft=draft, cluster=c, flavor=flavor) for c in clusters
        ),
        "pod_cpu_milli": pod.cpu_milli,
        "pod_memory_mib": pod.memory_mib,
        "pod_milli": pod.gpu_count * pod.gpu_milli or pod.cpu_milli,
        "pods_count": sum(p.min_count for p in pending.pod_sets),
    }
