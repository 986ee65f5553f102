"""What could ever start, whatever is free now: asked at submission, and to say why work waits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from scheduler.core.bounds import firm
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.node_pools import nodes_of
from scheduler.core.fleet.space import free_milli, largest_beside, largest_free_milli
from scheduler.core.memory import Memory
from scheduler.core.placing.place import clusters_for, would_place
from scheduler.core.placing.together import apart, is_bound, why_not_together
from scheduler.core.plan import Place
from scheduler.core.reasons import BINDS_BOTH, BINDS_CORES, BINDS_MEMORY, Reason, ReasonCode
from scheduler.core.request import Option, Request, Requests
from scheduler.core.snapshot import FlavorView, NodeView, PendingView, Snapshot
from scheduler.core.units import FlavorId

IN_VAIN = frozenset(
    {
        ReasonCode.NEVER_ADMISSIBLE,
        ReasonCode.NO_MATCHING_FLAVOR,
        ReasonCode.EXCEEDS_CAPACITY,
        ReasonCode.ISOLATION,
        ReasonCode.QUEUE_HELD,
        ReasonCode.GATE,
        ReasonCode.DEPENDENCY,
        ReasonCode.GATHERING,
        ReasonCode.STRAYS,
        ReasonCode.BUDGET_USED,
        ReasonCode.RUN_TIME_UNKNOWN,
        ReasonCode.INVALID,
    }
)
"""What waits for these does not start, whatever comes free."""
HOPELESS = frozenset(
    {
        ReasonCode.NEVER_ADMISSIBLE,
        ReasonCode.NO_MATCHING_FLAVOR,
        ReasonCode.EXCEEDS_CAPACITY,
        ReasonCode.ISOLATION,
    }
)
"""Reasons that no release of capacity takes away."""
OF_ROOM = frozenset(
    {
        ReasonCode.NO_FREE_CAPACITY,
        ReasonCode.NO_FIT,
        ReasonCode.HARDWARE_HELD,
        ReasonCode.CLUSTER_UNAVAILABLE,
    }
)
"""There is none, or none that is to be had; what may still come is another matter."""
_TOLD_FIRST = (ReasonCode.WAITING_FOR_NODE, ReasonCode.KEPT_FOR_OTHERS)


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


def told_of(reasons: list[Reason]) -> Reason:
    """As `most_useful`, of one that waits; where that lacks room, first what may still give it
    some with another option."""
    told = most_useful(reasons)
    if told.code not in OF_ROOM:
        return told
    return next((r for code in _TOLD_FIRST for r in reasons if r.code is code), told)


def because(code: ReasonCode, **numbers: int | str) -> Reason:
    return Reason(code, tuple(sorted(numbers.items())))


def waits_for(
    *, places: Sequence[Place], flavors: Mapping[FlavorId, FlavorView], victims: int
) -> Reason:
    """It waits until these places are free, for which so many are stopped now."""
    flavor = places[0].flavor
    return because(
        ReasonCode.WAITING_FOR_PREEMPTION,
        coming_milli=sum(place.amount_milli for place in places if place.flavor == flavor),
        flavor=flavors[flavor].name,
        victims_count=victims,
    )


class Limits:
    """The fleet with nothing in it; built when first asked, and kept for many questions."""

    def __init__(self, snapshot: Snapshot, memory: Memory | None = None) -> None:
        self._snapshot = snapshot
        self._memory = memory or Memory()
        self._empty: Draft | None = None
        self._known: dict[Option, Reason | None] = {}

    @property
    def empty(self) -> Draft:
        if self._empty is None:
            empty = all_usable(self._snapshot)
            self._empty = self._memory.draft("empty", snapshot=empty, holding=())
        return self._empty

    @cached_property
    def _requests(self) -> Requests:
        return Requests(flavors=self.empty.flavors, book=self.empty.book)

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
        return most_useful([*reasons, *(refusal.reason for refusal in request.refused)])

    def known(self, *, option: Option) -> bool | None:
        """Whether `of_capacity` found nothing against it; None when it was not asked."""
        return self._known[option] is None if option in self._known else None

    def learn(self, *, option: Option) -> None:
        """Nothing is against it, as was found elsewhere."""
        self._known.setdefault(option)

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
        reason = firm.why_not(drafts=(self.empty,), pending=pending, option=option)
        if reason is not None:
            return reason
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
        if any(would_place(draft=draft, pending=pending, request=request, option=option)):
            return None
        numbers = room_numbers(draft=draft, pending=pending, request=request, option=option)
        numbers |= why_no_fit(draft=draft, pending=pending, request=request, option=option)
        return because(ReasonCode.EXCEEDS_CAPACITY, **numbers)


def all_usable(snapshot: Snapshot) -> Snapshot:
    """The same with no node or device out of use, or in use by others, and with all nodes that
    can come: all there could be."""
    clusters = tuple(
        replace(
            cluster,
            usable=True,
            nodes=tuple(
                node
                if _is_all_usable(node)
                else replace(
                    node,
                    usable=True,
                    foreign=(),
                    devices=tuple(replace(device, usable=True) for device in node.devices),
                )
                for node in (*cluster.nodes, *chain.from_iterable(map(nodes_of, cluster.coming)))
            ),
        )
        for cluster in snapshot.clusters
    )
    return replace(snapshot, clusters=clusters)


def _is_all_usable(node: NodeView) -> bool:
    return node.usable and not node.foreign and all(device.usable for device in node.devices)


def room_numbers(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> dict[str, int | str]:
    """What the least start asks of its scarcest flavor, and the most that a cluster has of it."""
    pending = option.asks(pending)
    clusters = clusters_for(draft=draft, request=request, option=option)
    kinds = {flavor.id: flavor for flavor in option.flavors}
    free = {
        flavor.id: max(free_milli(draft=draft, cluster=c, flavor=flavor) for c in clusters)
        for flavor in kinds.values()
    }
    _, scarce, asked = min(
        (free[flavor] - asked, flavor, asked) for flavor, asked in option.needs if flavor in free
    )
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


def why_no_fit(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> dict[str, int | str]:
    """Asked when it does not fit: that it has to be together, if it fits apart, or what binds, if
    not the devices; {} when they do."""
    pending = option.asks(pending)
    if is_bound(pending=pending, request=request):
        numbers = why_not_together(draft=draft, pending=pending, request=request, option=option)
        if numbers:
            return numbers
        pending, request = apart(pending=pending, request=request)
    return binding_numbers(draft=draft, pending=pending, request=request, option=option)


def binding_numbers(
    *, draft: Draft, pending: PendingView, request: Request, option: Option
) -> dict[str, int | str]:
    """Asked when it does not fit: what binds, if not the devices; {} when they do.

    A resource binds when the workload would fit if it asked for none of it. Cores of work without
    devices are its flavor, and count as devices here.
    """

    def fits_without(*, cores: bool = False, memory: bool = False) -> bool:
        asks = replace(
            pending,
            pod_sets=tuple(
                replace(
                    p,
                    cpu_milli=0 if cores and p.gpu_count else p.cpu_milli,
                    memory_mib=0 if memory else p.memory_mib,
                )
                for p in pending.pod_sets
            ),
        )
        return any(would_place(draft=draft, pending=asks, request=request, option=option))

    if not fits_without(cores=True, memory=True):
        return {}
    binds = BINDS_BOTH
    if fits_without(cores=True):
        binds = BINDS_CORES
    elif fits_without(memory=True):
        binds = BINDS_MEMORY
    clusters = clusters_for(draft=draft, request=request, option=option)
    tightest: tuple[int, dict[str, int | str]] | None = None
    for pod, flavor in zip(pending.pod_sets, option.flavors, strict=True):
        beside = [
            largest_beside(draft=draft, cluster=c, pod_set=pod, flavor=flavor) for c in clusters
        ]
        cpu_milli, memory_mib = (max(each) for each in zip(*beside, strict=True))
        # In thousandths, so that cores and memory compare: how much of the largest it asks.
        of_cores = pod.cpu_milli * 1000 // max(1, cpu_milli) if pod.gpu_count else 0
        of_memory = pod.memory_mib * 1000 // max(1, memory_mib)
        part = {BINDS_CORES: of_cores, BINDS_MEMORY: of_memory}.get(binds, of_cores + of_memory)
        if tightest is None or part > tightest[0]:
            tightest = (
                part,
                {
                    "asked_milli": dict(option.needs)[flavor.id],
                    "binds": binds,
                    "flavor": flavor.name,
                    "free_milli": max(
                        free_milli(draft=draft, cluster=c, flavor=flavor) for c in clusters
                    ),
                    "largest_free_milli": max(
                        largest_free_milli(draft=draft, cluster=c, flavor=flavor) for c in clusters
                    ),
                    "largest_cpu_milli": cpu_milli,
                    "largest_memory_mib": memory_mib,
                    "pod_cpu_milli": pod.cpu_milli,
                    "pod_memory_mib": pod.memory_mib,
                    "pod_milli": pod.gpu_count * pod.gpu_milli or pod.cpu_milli,
                    "pods_count": pod.min_count,
                },
            )
    return {} if tightest is None else tightest[1]
