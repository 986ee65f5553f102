"""What a workload asks for, worked out once for all workloads that ask for the same."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from operator import attrgetter
from typing import NamedTuple

from scheduler.core.node.isolation import is_enough, stricter
from scheduler.core.quota.portions import as_given, portion_milli
from scheduler.core.quota.quota import Book, amount_milli
from scheduler.core.reasons import BY_PROJECT, BY_REQUEST, Reason, ReasonCode
from scheduler.core.snapshot import FlavorKind, FlavorView, Isolation, PendingView, PodSetView
from scheduler.core.units import ONE_MILLI, ClusterId, FlavorId, ProjectId

MOST_OPTIONS = 64
"""Combinations of flavors that are tried for one workload, in the order that it accepts them; and
beside these all in which its pod sets take the same one."""


SHAPE = attrgetter(
    "count",
    "min_count",
    "cpu_milli",
    "memory_mib",
    "gpu_count",
    "gpu_milli",
    "flavors",
    "topology",
    "gpu_memory_mib",
    "least_isolation",
    "any_order",
)


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One accepted flavor for each pod set, and what the least start is charged of each flavor.

    `needs` is in thousandths, ascending by flavor, then by the models of which they count;
    `amounts` is what all its pods take of each flavor. `rank` is as low as it is preferred:
    options of one rank are as welcome as each other. `by_memory`: some pod set asks for memory of
    a device. Belongs to one request: equal to itself alone.
    """

    flavors: tuple[FlavorView, ...]
    needs: tuple[tuple[FlavorId, int], ...]
    amounts: tuple[tuple[FlavorId, int], ...]
    rank: tuple[int, ...] = ()
    by_memory: bool = False

    def asks(self, pending: PendingView) -> PendingView:
        """The workload as it asks with this option: for memory of a device in thousandths of the
        flavor."""
        if not self.by_memory:
            return pending
        fitted = zip(pending.pod_sets, self.flavors, strict=True)
        pod_sets = tuple(as_given(pod_set=p, flavor=f) for p, f in fitted)
        return replace(pending, pod_sets=pod_sets)


class Refusal(NamedTuple):
    """A flavor that a pod set names and may not get, whatever is free."""

    flavor: FlavorView
    reason: Reason


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A class of identical requests: workloads that differ in name, project and priority only.

    `options` has the preferred flavors first, by rank; () when none exists that suits. `clusters`
    () takes any. `order` is that in which pod sets are placed, largest first. `count` counts all
    pods. `bound` are the pod sets that have to be in domains of their own, those first of which
    most has to be in one domain; `near` those that had better be, in `order`. `unlike`: several
    pod sets ask for devices, so that it may matter who is placed first. `refused` are flavors that
    it names and that are in no option, for what they are; by memory, those with most first.
    """

    options: tuple[Option, ...]
    clusters: tuple[ClusterId, ...]
    order: tuple[int, ...]
    count: int
    preemptible: bool
    bound: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    unlike: bool = False
    refused: tuple[Refusal, ...] = ()

    def accepts(self, cluster: ClusterId) -> bool:
        return not self.clusters or cluster in self.clusters


class Requests:
    """The classes met so far; one `Request` object for each."""

    def __init__(
        self,
        *,
        flavors: Mapping[FlavorId, FlavorView],
        book: Book,
        by_limit: bool = False,
        timed: Collection[ProjectId] = (),
    ) -> None:
        """`by_limit`: those with another run-time limit are of another class; of the `timed`
        projects they always are. So are those whose projects have quotas of other models, or
        accept less or more isolation."""
        self._flavors = flavors
        self._parts = book.parts
        self._isolations = book.isolations
        self._by_limit = by_limit
        self._timed = timed
        self._known: dict[tuple[object, ...], Request] = {}

    def of(self, pending: PendingView) -> Request:
        """The class of the workload."""
        counts = self._by_limit or pending.project in self._timed
        limit_s = pending.run_time_limit_s if counts else None
        bound = self._parts.bound(project=pending.project)
        isolation = self._isolations.get(pending.project)
        asks = *map(SHAPE, pending.pod_sets), pending.clusters, pending.topology
        shape = asks, limit_s, pending.preemptible, bound, isolation
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = self._request(pending, bound)
        return found

    def _request(self, pending: PendingView, bound: frozenset[FlavorId]) -> Request:
        pod_sets, own = pending.pod_sets, self._isolations.get(pending.project, Isolation.NONE)
        refused: dict[FlavorId, Refusal] = {}
        accepted: list[list[FlavorView]] = []
        for pod_set in pod_sets:
            named = [self._flavors[f] for f in pod_set.flavors if self._suits(f, pod_set)]
            why = {flavor.id: _why_refused(pod_set, flavor, own) for flavor in named}
            refused |= {f.id: Refusal(f, reason) for f in named if (reason := why[f.id])}
            accepted.append([flavor for flavor in named if why[flavor.id] is None])
        by_memory = any(pod_set.gpu_memory_mib is not None for pod_set in pod_sets)
        options = [
            Option(
                c,
                self._needs(pod_sets, c, bound),
                _amounts(pod_sets, c, attrgetter("count")),
                _rank(pod_sets, c, accepted),
                by_memory,
            )
            for c in _combined(accepted)
        ]
        options.sort(key=attrgetter("rank"))
        order = sorted(range(len(pod_sets)), key=lambda i: _size(pod_sets[i], i))
        count = sum(pod_set.count for pod_set in pod_sets)
        wishes = {i: p.topology.required for i, p in enumerate(pod_sets) if p.topology is not None}
        bound_sets = [i for i in order if wishes.get(i) is True]
        return Request(
            tuple(options),
            pending.clusters,
            tuple(order),
            count,
            pending.preemptible,
            tuple(sorted(bound_sets, key=lambda i: _of_group(pod_sets[i]))),
            tuple(i for i in order if wishes.get(i) is False),
            sum(pod_set.gpu_count > 0 for pod_set in pod_sets) > 1,
            tuple(sorted(refused.values(), key=lambda r: -r.flavor.memory_mib * by_memory)),
        )

    def _suits(self, flavor_id: FlavorId, pod_set: PodSetView) -> bool:
        flavor = self._flavors.get(flavor_id)
        if flavor is None:
            return False
        if not pod_set.gpu_count:
            return flavor.kind is FlavorKind.CPU
        given = flavor.kind in (FlavorKind.WHOLE, FlavorKind.MIG)
        if pod_set.gpu_memory_mib is not None:
            return pod_set.gpu_count == 1 and (given or flavor.kind is FlavorKind.SHARE)
        if flavor.kind is FlavorKind.SHARE:
            return pod_set.gpu_count == 1 and 0 < pod_set.gpu_milli <= ONE_MILLI
        return given and pod_set.gpu_milli == ONE_MILLI

    def _needs(
        self,
        pod_sets: Sequence[PodSetView],
        flavors: Sequence[FlavorView],
        bound: frozenset[FlavorId],
    ) -> tuple[tuple[FlavorId, int], ...]:
        needs = _amounts(pod_sets, flavors, attrgetter("min_count"))
        of_models = self._parts.needs(bound=bound, needs=dict(needs))
        return (*needs, *sorted(of_models.items()))


def _amounts(
    pod_sets: Sequence[PodSetView],
    flavors: Sequence[FlavorView],
    pods: Callable[[PodSetView], int],
) -> tuple[tuple[FlavorId, int], ...]:
    """Of each flavor what so many pods of each set take, in thousandths, ascending by flavor."""
    found: dict[FlavorId, int] = {}
    for pod_set, flavor in zip(pod_sets, flavors, strict=True):
        given = as_given(pod_set=pod_set, flavor=flavor)
        found[flavor.id] = found.get(flavor.id, 0) + pods(pod_set) * amount_milli(pod_set=given)
    return tuple(sorted(found.items()))


def _why_refused(pod_set: PodSetView, flavor: FlavorView, of_project: Isolation) -> Reason | None:
    """Why it may not have a flavor that suits it otherwise."""
    least, asked_mib = stricter(of_project, pod_set.least_isolation), pod_set.gpu_memory_mib
    numbers: dict[str, int | str] = {"flavor": flavor.name}
    if not is_enough(given=flavor.isolation, least=least):
        by = BY_PROJECT if least is of_project else BY_REQUEST
        numbers |= {"by": by, "given": flavor.isolation.value, "least": least.value}
        return Reason(ReasonCode.ISOLATION, tuple(sorted(numbers.items())))
    if asked_mib is None or portion_milli(gpu_memory_mib=asked_mib, flavor=flavor) is not None:
        return None
    numbers |= {"gpu_memory_mib": asked_mib, "largest_gpu_memory_mib": flavor.memory_mib}
    return Reason(ReasonCode.EXCEEDS_CAPACITY, tuple(sorted(numbers.items())))


def _combined(accepted: Sequence[Sequence[FlavorView]]) -> Sequence[tuple[FlavorView, ...]]:
    """A flavor for each pod set, in every way that is tried."""
    found = list(islice(product(*accepted), MOST_OPTIONS)) if accepted else []
    for flavor in accepted[0] if len(found) == MOST_OPTIONS else ():
        alike = (flavor,) * len(accepted)
        if alike not in found and all(flavor in of for of in accepted):
            found.append(alike)
    return found


def _rank(
    pod_sets: Sequence[PodSetView],
    flavors: Sequence[FlavorView],
    accepted: Sequence[Sequence[FlavorView]],
) -> tuple[int, ...]:
    return tuple(
        0 if pod_set.any_order else of_set.index(flavor)
        for pod_set, flavor, of_set in zip(pod_sets, flavors, accepted, strict=True)
    )


def _size(pod_set: PodSetView, i: int) -> tuple[int, ...]:
    gpus = pod_set.gpu_count * pod_set.gpu_milli
    return -gpus, -pod_set.cpu_milli, -pod_set.memory_mib, i


def _of_group(pod_set: PodSetView) -> tuple[int, int]:
    """What sorts the pod set by all that one domain has to take of it, the most first."""
    size = pod_set.topology.group_size if pod_set.topology else None
    pods = size or pod_set.min_count
    return -pods * pod_set.gpu_count * pod_set.gpu_milli, -pods * pod_set.cpu_milli
