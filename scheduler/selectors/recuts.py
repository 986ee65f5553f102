"""Recuts of a cluster's nodes, what one would cost, and which are proposed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from clusters import stock
from clusters.models import Cluster, Node
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import NotFound
from scheduler.core.lifecycle import State
from scheduler.core.moving.recut import Cost, Pool, Proposal, cost, for_what_waits, towards
from scheduler.core.node.ways import Way
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import DeviceMode, Snapshot
from scheduler.core.units import ONE_MILLI, ClusterId, WorkloadId
from scheduler.models import Recut, RecutState, Workload
from scheduler.models.recut import LONGEST
from scheduler.selectors import cuttable, layouts
from scheduler.selectors.load import load

NEWEST = 50
"""Recuts that are shown."""
AFTERWARDS = timedelta(hours=1)
"""Of a window, beyond the last end that is waited for: its grace, and until it is seen gone."""
_FOR_ROOM = (
    ReasonCode.NO_MATCHING_FLAVOR,
    ReasonCode.EXCEEDS_CAPACITY,
    ReasonCode.NO_FIT,
    ReasonCode.NO_FREE_CAPACITY,
    ReasonCode.ROOM_KEPT,
    ReasonCode.WAITING_FOR_NODE,
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Work that is stopped, or waited for, and what of it is lost, in seconds of a GPU. `ends_at`:
    what is waited for has ended then at the latest, None where nobody knows."""

    workload: UUID
    name: str
    lost_s: int
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What it takes to empty a node now. `foreign`: pods of others hold devices there. Unless it
    can be emptied `at_once`, all that is waited for has ended at `empty_at`, at the latest; None
    where nobody knows."""

    node: str
    now: tuple[Way, ...]
    ways: tuple[Way, ...]
    stops: tuple[Stop, ...]
    waits_for: tuple[Stop, ...]
    foreign: bool
    lost_s: int
    at_once: bool
    empty_at: datetime | None


@dataclass(frozen=True, slots=True)
class Proposed:
    """`why` is "waiting" or "advice"; `serves` is how many waiting slices more it has room for, or
    how many devices it brings to what is advised."""

    model: str
    why: str
    serves: int
    preview: Preview


@dataclass(frozen=True, slots=True)
class Step:
    state: str
    at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class Told:
    """A recut and how it came to where it is, as the audit has it."""

    row: Recut
    steps: tuple[Step, ...]


def of_cluster(*, cluster: Cluster) -> tuple[Told, ...]:
    """The newest first, NEWEST at most. Two queries."""
    rows = list(
        Recut.objects.filter(node__cluster=cluster)
        .select_related("node")
        .order_by("-planned_at", "-id")[:NEWEST]
    )
    events = AuditEvent.objects.filter(
        target_id__in={row.node_id for row in rows}, action__startswith="recut."
    ).order_by("at", "id")
    steps: dict[str, list[Step]] = {}
    for event in events:
        step = Step(event.action.removeprefix("recut."), event.at, event.actor_name)
        steps.setdefault(str(event.after.get("recut")), []).append(step)
    return tuple(Told(row, tuple(steps.get(str(row.id), ()))) for row in rows)


def one(*, cluster: Cluster, id: UUID) -> Recut:
    """Raises NotFound."""
    row = Recut.objects.filter(node__cluster=cluster, id=id).select_related("node").first()
    if row is None:
        raise NotFound("There is no such recut.")
    return row


def node(*, cluster: Cluster, name: str) -> Node:
    """Raises NotFound."""
    found = Node.objects.filter(cluster=cluster, name=name, gone_at__isnull=True).first()
    if found is None:
        raise NotFound("There is no such node.")
    return found


def stuck_count() -> int:
    """Nodes that a recut left cordoned, that nobody has opened and none has cut well since."""
    return _stuck().values("node").distinct().count()


def stuck_nodes(*, cluster_id: UUID) -> tuple[str, ...]:
    """Their names in that cluster, sorted. One query."""
    names = _stuck().filter(node__cluster=cluster_id).values_list("node__name", flat=True)
    return tuple(sorted(set(names)))


def _stuck() -> QuerySet[Recut]:
    well = Recut.objects.filter(
        node=OuterRef("node"), state=RecutState.DONE, ended_at__gt=OuterRef("ended_at")
    )
    return Recut.objects.filter(
        ~Exists(well), stuck=True, node__schedulable=False, node__gone_at=None
    )


def waiting_for_room() -> frozenset[WorkloadId]:
    """Work that would start if there were room for it, by what the last cycle said of it."""
    waiting = Workload.objects.filter(state=State.PENDING, reason__code__in=_FOR_ROOM)
    return frozenset(WorkloadId(str(id)) for id in waiting.values_list("id", flat=True))


def preview(*, node: Node, now: Sequence[Way], ways: Sequence[Way], at: datetime) -> Preview:
    """Of a node that is cut so by somebody's hand."""
    snapshot = load(at=at).snapshot
    view = next(
        each for cluster in snapshot.clusters for each in cluster.nodes if each.id == str(node.id)
    )
    price = cost(snapshot=snapshot, node=view)
    return _shown([(node.name, price, tuple(now), tuple(ways))])[0]


def proposed(*, cluster: Cluster, at: datetime) -> tuple[Proposed, ...]:
    """Of each model with devices that are cut there, and of which no node is about to be cut anew:
    for what waits, or else towards what is advised. Where no node can be emptied at once, of one
    that is sure to be empty within the longest window. Takes as long as the advice."""
    if settings.BERTH_RECUT == "off":
        return ()
    snapshot, id = load(at=at).snapshot, ClusterId(str(cluster.id))
    found: list[tuple[str, str, Proposal]] = []
    for_room = waiting_for_room()
    advised = {
        each.advice.model: dict(each.advice.layouts)
        for each in layouts.advice(at=at, cluster=cluster.name)
    }
    live = Recut.objects.filter(node__cluster=cluster, ended_at__isnull=True)
    busy = set(live.values_list(stock.column("node__devices__"), flat=True))
    nodes = cuttable.ids(cluster_id=cluster.id)
    empty_by = int((at + LONGEST - AFTERWARDS).timestamp())
    for model in _cut(snapshot, id):
        if model in busy:
            continue
        pool = Pool(id, model, nodes, empty_by=empty_by)
        made = for_what_waits(snapshot=snapshot, pool=pool, for_room=for_room)
        if made is not None:
            found.append((model, "waiting", made))
        elif model in advised:
            made = towards(snapshot=snapshot, pool=pool, wanted=advised[model])
            if made is not None:
                found.append((model, "advice", made))
    names = {
        node.id: node.name for each in snapshot.clusters if each.id == id for node in each.nodes
    }
    shown = _shown([(names[p.cost.node], p.cost, p.now, p.ways) for _, _, p in found])
    return tuple(
        Proposed(model, why, made.serves, preview)
        for (model, why, made), preview in zip(found, shown, strict=True)
    )


def _cut(snapshot: Snapshot, cluster: ClusterId) -> list[str]:
    return sorted(
        {
            device.model
            for each in snapshot.clusters
            if each.id == cluster
            for node in each.nodes
            for device in node.devices
            if device.mode is DeviceMode.MIG_STATIC
        }
    )


def _shown(
    made: Sequence[tuple[str, Cost, tuple[Way, ...], tuple[Way, ...]]],
) -> list[Preview]:
    """With the names of who is stopped. One query."""
    ids = {id for _, price, *_ in made for id, _ in price.stops}
    ids |= {id for _, price, *_ in made for id, _ in price.waits_for}
    names = {
        str(id): name for id, name in Workload.objects.filter(id__in=ids).values_list("id", "name")
    }

    def stop(id: str, *, lost_milli_s: int = 0, ends_at: int | None = None) -> Stop:
        lost_s = -(-lost_milli_s // ONE_MILLI)
        return Stop(UUID(id), names.get(id, ""), lost_s, _moment(ends_at))

    return [
        Preview(
            node=name,
            now=now,
            ways=ways,
            stops=tuple(stop(id, lost_milli_s=lost) for id, lost in price.stops),
            waits_for=tuple(stop(id, ends_at=end) for id, end in price.waits_for),
            foreign=price.foreign,
            lost_s=-(-price.lost_milli_s // ONE_MILLI),
            at_once=price.at_once,
            empty_at=_moment(price.empty_at),
        )
        for name, price, now, ways in made
    ]


def _moment(at: int | None) -> datetime | None:
    return datetime.fromtimestamp(at, UTC) if at else None


def alike(ways: Sequence[Way]) -> tuple[tuple[int, Way], ...]:
    """How many devices are cut in each way, whole ones last."""
    counted = Counter(ways).items()
    return tuple(
        (count, way) for way, count in sorted(counted, key=lambda each: (not each[0], each[0]))
    )
