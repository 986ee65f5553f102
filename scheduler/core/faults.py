"""Which objects of a snapshot contradict themselves or each other: each by its id, with numbers.

Rows under the database's constraints give next to none; a restored backup, a vanished node or a
hand in the tables may. What is planned for the rest goes by the snapshot that `sound` leaves.

On a healthy snapshot a check is a pass over one attribute of all objects of a kind, in C, since
every plan begins with it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol

from scheduler.core.node import mig, replicas
from scheduler.core.node.fit import Room, is_odd
from scheduler.core.node.shapes import LARGEST, MOST_DEVICES
from scheduler.core.plan import Fault
from scheduler.core.reasons import FaultKind, Subject
from scheduler.core.request import SHAPE
from scheduler.core.snapshot import (
    CohortView,
    DeviceMode,
    DeviceView,
    HeldView,
    HoldingView,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    Snapshot,
)
from scheduler.core.sound import MOST_MILLI, MOST_WEIGHT, once, why_not_counted, why_not_kept
from scheduler.core.units import ONE_MILLI, CohortId, FlavorId, PodSetId

MOST_PODS = 1 << 16
"""Pods of one pod set: a search tries them one by one."""
MOST_LEVELS = 32
"""Cohorts above one another: some walks towards the fleet are recursive."""


def faults(snapshot: Snapshot) -> tuple[Fault, ...]:
    """Every contradiction but those of rooms, ascending, whatever the order of the input."""
    found = {
        *_listed_twice(snapshot),
        *of_one(snapshot),
        *_tree(snapshot),
        *_reservations(snapshot),
        *of_budgets(snapshot),
    }
    return tuple(sorted(found))


def of_one(snapshot: Snapshot) -> Iterator[Fault]:
    """What is wrong with a node, a workload or a placement itself, or with where that is."""
    yield from _hardware(snapshot)
    yield from _holders(snapshot)
    yield from _requests(snapshot)


def of_rooms(rooms: Collection[Room], holding: Iterable[HoldingView]) -> tuple[Fault, ...]:
    """What is held beyond what there is, in rooms that are overdrawn. A `Room` itself lets nothing
    new into it."""
    found = []
    held = [p for h in holding for p in h.placements] if rooms else []
    for room in rooms:
        node = room.node
        for what, has, free in (
            ("cpu_milli", node.cpu_milli, room.cpu_milli),
            ("memory_mib", node.memory_mib, room.memory_mib),
        ):
            if free < 0:
                text = f"node {node.id} has {what} {has} and holders of {has - free}: {free} free"
                found.append(Fault(FaultKind.NEGATIVE_FREE, Subject.NODE, node.id, text))
        for device in room.broken:
            found.append(_of_device(node, room.devices[device], held))
    return tuple(found)


def _of_device(node: NodeView, device: DeviceView, held: Iterable[HeldView]) -> Fault:
    here = [p for p in held if p.node == node.id and any(d == device.id for d, _ in p.spans)]
    on = sorted((span, f"placement {p.id}") for p in here for d, span in p.spans if d == device.id)
    on += [(span, "foreign pods") for d, span in node.foreign if d == device.id]
    overlaps = (
        (one, other)
        for i, other in enumerate(on)
        for one in on[:i]
        if mig.mask(one[0]) & mig.mask(other[0])
    )
    pair = next(overlaps, None)
    where = f"device {device.id} of node {node.id} is held"
    if pair is not None:
        holders = " and ".join(f"{id} [{span.start}, {span.end})" for span, id in pair)
        text = f"{where} twice, by {holders}"
        return Fault(FaultKind.OVER_ALLOCATED, Subject.DEVICE, device.id, text)
    odd = min(p.id for p in here if is_odd(holder=p, device=device))
    width = replicas.width_milli(replicas=device.replicas)
    text = f"{where} by placement {odd} in other parts than its replicas of {width} thousandths"
    return Fault(FaultKind.ODD_SHARE, Subject.DEVICE, device.id, text)


class _Named(Protocol):
    @property
    def id(self) -> str: ...


_id = attrgetter("id")


def _twice[T](
    subject: Subject, listed: Sequence[T], id_of: Callable[[T], str] = _id
) -> Iterator[Fault]:
    if len(set(map(id_of, listed))) == len(listed):
        return
    for id, times in Counter(map(id_of, listed)).items():
        if times > 1:
            text = f"{subject} {id} is listed {times} times; right would be once"
            yield Fault(FaultKind.DUPLICATE_ID, subject, id, text)


def _listed_twice(snapshot: Snapshot) -> Iterator[Fault]:
    placements = [p for h in snapshot.holding for p in h.placements]
    nodes = [node for cluster in snapshot.clusters for node in cluster.nodes]
    yield from _twice(Subject.FLAVOR, snapshot.flavors)
    yield from _twice(Subject.CLUSTER, snapshot.clusters)
    yield from _twice(Subject.NODE, nodes)
    yield from _twice(Subject.DEVICE, [device for node in nodes for device in node.devices])
    yield from _twice(Subject.COHORT, snapshot.cohorts)
    yield from _twice(Subject.PROJECT, snapshot.queues, attrgetter("project"))
    yield from _twice(Subject.WORKLOAD, snapshot.pending)
    yield from _twice(Subject.WORKLOAD, snapshot.holding)
    yield from _twice(Subject.PLACEMENT, placements)
    holding = set(map(_id, snapshot.holding))
    for id in holding.intersection(map(_id, snapshot.pending if holding else ())):
        text = f"workload {id} waits and holds at once; right would be one of the two"
        yield Fault(FaultKind.DUPLICATE_ID, Subject.WORKLOAD, id, text)


def _outside[T](
    objects: Sequence[T], name: str, most: int, least: int = 0
) -> Iterator[tuple[T, str]]:
    """The objects whose attribute is neither None nor from `least` to `most`, and how it is."""
    read: Callable[[T], int | None] = attrgetter(name)
    values = set(map(read, objects)) - {None}
    wrong = {value for value in values if value is not None and not least <= value <= most}
    if wrong:
        for each in objects:
            if read(each) in wrong:
                yield each, f"has {name} {read(each)}; right would be {least} to {most}"


def _quantities[T: _Named](
    subject: Subject, objects: Sequence[T], name: str, most: int
) -> Iterator[Fault]:
    for each, text in _outside(objects, name, most):
        yield Fault(FaultKind.QUANTITY, subject, each.id, f"{subject} {each.id} {text}")


def _hardware(snapshot: Snapshot) -> Iterator[Fault]:
    nodes = [node for cluster in snapshot.clusters for node in cluster.nodes]
    yield from _quantities(Subject.NODE, nodes, "cpu_milli", LARGEST - 1)
    yield from _quantities(Subject.NODE, nodes, "memory_mib", LARGEST - 1)
    layouts: dict[object, str] = {}
    for node in nodes:
        for device in node.devices:
            if not 1 <= device.replicas <= ONE_MILLI:
                text = f"has {device.replicas} replicas; right would be 1 to {ONE_MILLI}"
                text = f"device {device.id} of node {node.id} {text}"
                yield Fault(FaultKind.QUANTITY, Subject.DEVICE, device.id, text)
            if device.slices and device.mode is DeviceMode.MIG_STATIC:
                key = device.model, tuple(map(_slice, device.slices))
                if key not in layouts:
                    layouts[key] = _why_illegal(device)
                if layouts[key]:
                    text = f"device {device.id} of node {node.id} {layouts[key]}"
                    yield Fault(FaultKind.ILLEGAL_SLICES, Subject.DEVICE, device.id, text)


_slice = attrgetter("profile", "span.start", "span.end")


def _why_illegal(device: DeviceView) -> str:
    """What is wrong with its slices; "" for a legal layout."""
    taken, media = 0, 0
    for piece in device.slices:
        span = piece.span
        legal = mig.legal_spans(model=device.model, profile=piece.profile)
        if span not in legal:
            starts = ", ".join(str(each.start) for each in legal) or "none of this model"
            return (
                f"has a slice {piece.profile} at [{span.start}, {span.end});"
                f" {device.model} starts it at {starts}"
            )
        if taken & mig.mask(span):
            return f"has two slices over each other at [{span.start}, {span.end})"
        taken |= mig.mask(span)
        media += piece.profile.endswith(mig.MEDIA)
    return f"has {media} slices with media engines; right would be 1" if media > 1 else ""


def _holders(snapshot: Snapshot) -> Iterator[Fault]:
    placements = [p for h in snapshot.holding for p in h.placements]
    if not placements:
        return
    yield from _quantities(Subject.PLACEMENT, placements, "cpu_milli", LARGEST - 1)
    yield from _quantities(Subject.PLACEMENT, placements, "memory_mib", LARGEST - 1)
    yield from _quantities(Subject.PLACEMENT, placements, "amount_milli", MOST_MILLI)
    flavors = set(map(_id, snapshot.flavors))
    yield from _unknown(
        FaultKind.UNKNOWN_FLAVOR, Subject.FLAVOR, set(map(attrgetter("flavor"), placements)),
        flavors, lambda p, id: p.flavor == id, placements,
    )  # fmt: skip
    everywhere = [node for cluster in snapshot.clusters for node in cluster.nodes]
    nodes = set(map(_id, everywhere))
    yield from _unknown(
        FaultKind.UNKNOWN_NODE, Subject.NODE, set(map(attrgetter("node"), placements)),
        nodes, lambda p, id: p.node == id, placements,
    )  # fmt: skip
    home = {device.id: node.id for node in everywhere for device in node.devices}
    apart = {(d, p.node) for p in placements for d, _ in p.spans if home.get(d) != p.node}
    if apart:  # a device listed twice is at home on both nodes
        apart -= {(device.id, node.id) for node in everywhere for device in node.devices}
    counted = {node.id for node in everywhere if node.counted}  # of a lost token one stands in
    strays = {d for d, node in apart if d in home or node in nodes - counted}
    yield from _unknown(
        FaultKind.UNKNOWN_DEVICE, Subject.DEVICE, strays, (),
        lambda p, id: any(device == id for device, _ in p.spans), placements,
    )  # fmt: skip


def _unknown(
    kind: FaultKind,
    subject: Subject,
    named: Iterable[str],
    known: Collection[str],
    names: Callable[[HeldView, str], bool],
    placements: Iterable[HeldView],
) -> Iterator[Fault]:
    for id in (id for id in named if id not in known):
        by = sorted(p.id for p in placements if names(p, id))
        where = "which its node does not have" if kind is FaultKind.UNKNOWN_DEVICE else "unknown"
        text = f"{subject} {id}, {where}, is held by {len(by)} placements, {by[0]} first"
        yield Fault(kind, subject, id, text)


def _tree(snapshot: Snapshot) -> Iterator[Fault]:
    cohorts = [(Subject.COHORT, c.id, c) for c in snapshot.cohorts]
    queues = [(Subject.PROJECT, q.project, q) for q in snapshot.queues]
    for members in (cohorts, queues):
        yield from _weights(members)
        yield from _quotas(members)
    parents = {c.id: c.parent for c in once(snapshot.cohorts, lambda c: c.id)}
    for subject, id, above in (
        *((Subject.COHORT, c.id, c.parent) for c in snapshot.cohorts),
        *((Subject.PROJECT, q.project, q.cohort) for q in snapshot.queues),
    ):
        if above and above not in parents:
            text = f"{subject} {id} hangs below the cohort {above}, which is unknown"
            yield Fault(FaultKind.UNKNOWN_COHORT, subject, id, text)
    for id in parents:
        yield from _upwards(id, parents)


type _Members = Sequence[tuple[Subject, str, CohortView | QueueView]]


def _weights(members: _Members) -> Iterator[Fault]:
    for subject, id, member in members:
        if not 1 <= member.weight <= MOST_WEIGHT:
            text = f"has weight {member.weight}; right would be 1 to {MOST_WEIGHT}"
            yield Fault(FaultKind.WEIGHT, subject, id, f"{subject} {id} {text}")


def _quotas(members: _Members) -> Iterator[Fault]:
    every = [quota for _, _, member in members for quota in member.quotas]
    names = ("nominal_milli", "borrowing_limit_milli", "lending_limit_milli")
    wrong = [name for name in names if any(True for _ in _outside(every, name, MOST_MILLI))]
    for subject, id, member in members:
        flavors = [quota.flavor for quota in member.quotas]
        if len(set(flavors)) < len(flavors):
            text = f"{subject} {id} has {len(flavors)} quotas of {len(set(flavors))} flavors"
            yield Fault(FaultKind.DUPLICATE_ID, subject, id, text)
        for name in wrong:
            for quota, text in _outside(member.quotas, name, MOST_MILLI):
                text = f"the quota of {subject} {id} of flavor {quota.flavor} {text}"
                yield Fault(FaultKind.QUANTITY, subject, id, text)


def _upwards(id: CohortId, parents: Mapping[CohortId, CohortId | None]) -> Iterator[Fault]:
    path, above = [id], parents[id]
    while above and above in parents and above not in path and len(path) <= MOST_LEVELS:
        path.append(above)
        above = parents[above]
    if above == id:
        text = f"cohort {id} is above itself: {' below '.join([*path, id])}"
        yield Fault(FaultKind.COHORT_CYCLE, Subject.COHORT, id, text)
    elif len(path) > MOST_LEVELS:
        text = f"cohort {id} is below {len(path) - 1} others or more; right would be fewer"
        yield Fault(FaultKind.TOO_DEEP, Subject.COHORT, id, text)


def _reservations(snapshot: Snapshot) -> Iterator[Fault]:
    for reservation, why in why_not_kept(snapshot):
        subject = Subject.COHORT if reservation.project is None else Subject.PROJECT
        of = reservation.project or reservation.cohort or ""
        text = f"a reservation for {subject} {of} {why}"
        yield Fault(FaultKind.RESERVATION, subject, of, text)


def of_budgets(snapshot: Snapshot) -> Iterator[Fault]:
    """What is wrong with budgets, and nothing else."""
    for budget, why in why_not_counted(snapshot):
        subject = Subject.COHORT if budget.project is None else Subject.PROJECT
        of = budget.project or budget.cohort or ""
        yield Fault(FaultKind.BUDGET, subject, of, f"the budget {budget.id} {why}")


def _requests(snapshot: Snapshot) -> Iterator[Fault]:
    workloads: Sequence[PendingView | HoldingView] = (*snapshot.pending, *snapshot.holding)
    several = [workload for workload in workloads if len(workload.pod_sets) != 1]
    shapes = set(map(SHAPE, chain.from_iterable(map(attrgetter("pod_sets"), workloads))))
    listed = Counter(map(_id, snapshot.flavors))
    flavors = {id for id, times in listed.items() if times == 1}
    nameless = PodSetId("")
    found = {of: _why_impossible(PodSetView(nameless, *of), flavors) for of in shapes}
    wrong = {shape: why for shape, why in found.items() if why}
    for each in several:
        ids = [pod_set.id for pod_set in each.pod_sets]
        if isinstance(each, PendingView) and not ids:
            yield _request(each.id, "asks for no pods")
        if len(set(ids)) < len(ids):
            yield _request(each.id, f"has {len(ids)} pod sets with {len(set(ids))} ids")
    for each in workloads if wrong else ():
        for pod_set in each.pod_sets:
            if SHAPE(pod_set) in wrong:
                why = wrong[SHAPE(pod_set)]
                yield _request(each.id, f"asks in pod set {pod_set.id} for {why}")


def _request(workload: str, text: str) -> Fault:
    text = f"workload {workload} {text}"
    return Fault(FaultKind.IMPOSSIBLE_REQUEST, Subject.WORKLOAD, workload, text)


def _why_impossible(asked: PodSetView, flavors: set[FlavorId]) -> str:
    """What nobody can mean by it; "" when it makes sense, whether or not it fits anywhere."""
    if not 1 <= asked.min_count <= asked.count <= MOST_PODS:
        return (
            f"{asked.min_count} to {asked.count} pods;"
            f" right would be 1 <= min_count <= count <= {MOST_PODS}"
        )
    for name, most in (
        ("cpu_milli", LARGEST - 1), ("memory_mib", LARGEST - 1), ("gpu_count", MOST_DEVICES),
    ):  # fmt: skip
        value = getattr(asked, name)
        if not 0 <= value <= most:
            return f"{name} {value}; right would be 0 to {most}"
    if asked.gpu_count and not 1 <= asked.gpu_milli <= ONE_MILLI:
        return f"gpu_milli {asked.gpu_milli}; right would be 1 to {ONE_MILLI}"
    if asked.gpu_memory_mib is not None and not 1 <= asked.gpu_memory_mib < LARGEST:
        return f"gpu_memory_mib {asked.gpu_memory_mib}; right would be 1 to {LARGEST - 1}"
    size = None if asked.topology is None else asked.topology.group_size
    if size is not None and (size < 1 or asked.count % size or asked.min_count < asked.count):
        return (
            f"{asked.min_count} to {asked.count} pods in groups of {size};"
            " right would be a group_size that divides count, and min_count as count"
        )
    unknown = [flavor for flavor in asked.flavors if flavor not in flavors]
    return f"flavor {unknown[0]}, which is not listed once" if unknown else ""
