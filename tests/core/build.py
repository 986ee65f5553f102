"""Small fleets in a few words: `snapshot(nodes=[node("n1", gpus=8)], queues=[queue("a", h100=4)])`

Names are ids. A flavor is known by its name; amounts are in whole devices, slices or cores.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.core.cycle import plan
from scheduler.core.plan import Admit, Hold, Place, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import (
    ClusterView,
    CohortView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    HeldView,
    HoldingView,
    Isolation,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    QuotaView,
    SliceView,
    Snapshot,
    TopologyView,
)
from scheduler.core.units import (
    ONE_MILLI,
    WHOLE_DEVICE,
    ClusterId,
    CohortId,
    DeviceId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    Span,
    UserId,
    WorkloadId,
)

H100 = "NVIDIA-H100-80GB-HBM3"
A30 = "NVIDIA-A30"
T4 = "Tesla-T4"
AT = 1_000_000


def _flavor(name: str, kind: FlavorKind, model: str = "", profile: str = "") -> FlavorView:
    return FlavorView(FlavorId(name), name, kind, model, profile)


def _share(name: str, model: str, isolation: Isolation, mib: int) -> FlavorView:
    return replace(_flavor(name, FlavorKind.SHARE, model), isolation=isolation, memory_mib=mib)


FLAVORS = (
    _flavor("h100", FlavorKind.WHOLE, H100),
    replace(_flavor("1g", FlavorKind.MIG, H100, "1g.10gb"), memory_mib=9_984),
    _flavor("1gme", FlavorKind.MIG, H100, "1g.10gb+me"),
    _flavor("2g", FlavorKind.MIG, H100, "2g.20gb"),
    _flavor("3g", FlavorKind.MIG, H100, "3g.40gb"),
    _flavor("7g", FlavorKind.MIG, H100, "7g.80gb"),
    _flavor("a30", FlavorKind.WHOLE, A30),
    _flavor("t4", FlavorKind.WHOLE, T4),
    _share("t4share", T4, Isolation.MEMORY, 15_360),
    _share("t4slot", T4, Isolation.NONE, 15_360),
    _share("a30share", A30, Isolation.MEMORY, 24_576),
    _flavor("cpu", FlavorKind.CPU),
    _flavor("h100all", FlavorKind.MODEL, H100),
    _flavor("t4all", FlavorKind.MODEL, T4),
)
BY_NAME = {flavor.id: flavor for flavor in FLAVORS}


def device(
    name: str,
    model: str = H100,
    *,
    cut: Sequence[tuple[str, int, int]] = (),
    dynamic: bool = False,
    shares: Isolation | None = None,
    usable: bool = True,
    replicas: int = ONE_MILLI,
) -> DeviceView:
    """`cut` lists its slices as (profile, start, end); "n1/3" is number 3 of n1."""
    mode = DeviceMode.MIG_STATIC if cut else DeviceMode.WHOLE
    return DeviceView(
        DeviceId(name),
        int(name.rsplit("/", 1)[-1]),
        model,
        DeviceMode.MIG_DYNAMIC if dynamic else mode,
        tuple(SliceView(profile, Span(start, end)) for profile, start, end in cut),
        shares,
        usable,
        replicas,
    )


def node(
    name: str,
    gpus: int = 0,
    model: str = H100,
    *,
    cores: int = 64,
    memory_gib: int = 512,
    dynamic: bool = False,
    cut: Sequence[tuple[str, int, int]] = (),
    shares: Isolation | None = None,
    usable: bool = True,
    at: str = "",
    replicas: int = ONE_MILLI,
) -> NodeView:
    """`at` has its value of each level of the topology, "/" between: "zone/rack"."""
    devices = (
        device(f"{name}/{i}", model, cut=cut, dynamic=dynamic, shares=shares, replicas=replicas)
        for i in range(gpus)
    )
    stands = tuple(at.split("/")) if at else ()
    cpu_milli, memory_mib = cores * 1000, memory_gib * 1024
    return NodeView(NodeId(name), name, cpu_milli, memory_mib, tuple(devices), usable, stands)


def cluster(name: str, nodes: Iterable[NodeView], *, usable: bool = True) -> ClusterView:
    return ClusterView(ClusterId(name), name, tuple(nodes), usable)


@dataclass(frozen=True)
class Quota:
    nominal: float
    borrow: float | None = 0
    lend: float | None = None


def milli(amount: float) -> int:
    return round(amount * ONE_MILLI)


def cohort(name: str, *, parent: str = "", weight: int = 1, **quotas: float | Quota) -> CohortView:
    """As `queue`."""
    return cohort_of(name, quotas, parent=parent, weight=weight)


def cohort_of(
    name: str, quotas: Mapping[str, float | Quota], *, parent: str = "", weight: int = 1
) -> CohortView:
    rows = queue_of(name, quotas).quotas
    return CohortView(CohortId(name), CohortId(parent) if parent else None, weight, rows)


def queue(
    project: str, *, tenant: str = "", weight: int = 1, **quotas: float | Quota
) -> QueueView:
    """Keywords are flavors, `_1g` for one that starts with a digit; a bare number is nominal."""
    return queue_of(project, quotas, tenant=tenant, weight=weight)


def queue_of(
    project: str, quotas: Mapping[str, float | Quota], *, tenant: str = "", weight: int = 1
) -> QueueView:
    rows = []
    for flavor, given in quotas.items():
        quota = given if isinstance(given, Quota) else Quota(given)
        rows.append(
            QuotaView(
                FlavorId(flavor.lstrip("_")),
                milli(quota.nominal),
                None if quota.borrow is None else milli(quota.borrow),
                None if quota.lend is None else milli(quota.lend),
            )
        )
    return QueueView(ProjectId(project), CohortId(tenant) if tenant else None, weight, tuple(rows))


def pods(
    count: int = 1,
    *,
    gpus: int = 1,
    flavors: str = "h100",
    share: float = 1,
    least: int | None = None,
    cores: float = 1,
    memory_gib: float = 1,
    name: str = "main",
) -> PodSetView:
    """`flavors` are accepted in the order given, separated by blanks."""
    return PodSetView(
        PodSetId(name),
        count,
        count if least is None else least,
        milli(cores),
        round(memory_gib * 1024),
        gpus,
        milli(share),
        tuple(FlavorId(flavor) for flavor in flavors.split()),
    )


def cpu_pods(count: int = 1, *, cores: float = 1, name: str = "main") -> PodSetView:
    return pods(count, gpus=0, flavors="cpu", cores=cores, name=name)


def job(
    name: str,
    project: str = "a",
    *pod_sets: PodSetView,
    priority: int = 0,
    submitted_at: int = 0,
    clusters: str = "",
    not_before: int = 0,
    limit_s: int | None = None,
    user: str = "",
    within: str = "",
    near: str = "",
) -> PendingView:
    """`within` is the level of which all its pods have to be in one domain, `near` had better."""
    named = [replace(p, id=PodSetId(f"{name}.{p.id}")) for p in pod_sets or (pods(),)]
    return PendingView(
        WorkloadId(name),
        ProjectId(project),
        priority,
        True,
        submitted_at,
        tuple(named),
        limit_s,
        tuple(ClusterId(c) for c in clusters.split()),
        not_before,
        UserId(user),
        TopologyView(within or near, bool(within)) if within or near else None,
    )


def runs(
    name: str,
    project: str,
    *where: str,
    flavor: str = "h100",
    span: tuple[int, int] | None = None,
    cores: float = 1,
    amount: float = 1,
    priority: int = 0,
    preemptible: bool = True,
    since_s: int | None = 0,
    releasing: bool = False,
    limit_s: int | None = None,
    in_cluster: str = "c1",
    of: PodSetView | None = None,
) -> HoldingView:
    """Work that holds whole devices ("n1/0"), a span of each, or cores of a node ("n1"): the pods
    of one set, which is `of` where that is given."""
    held = []
    for i, device_or_node in enumerate(where):
        on, _, ordinal = device_or_node.partition("/")
        spans = ((DeviceId(device_or_node), Span(*span) if span else WHOLE_DEVICE),)
        held.append(
            HeldView(
                PlacementId(f"{name}-{i}"),
                PodSetId(f"{name}.main"),
                NodeId(on),
                FlavorId(flavor),
                milli(amount if ordinal else cores),
                milli(cores),
                1024,
                spans if ordinal else (),
                rank=i,
            )
        )
    started_at = None if since_s is None else AT - since_s
    return HoldingView(
        WorkloadId(name),
        ProjectId(project),
        ClusterId(in_cluster),
        priority,
        preemptible,
        AT - (since_s or 0),
        tuple(held),
        started_at,
        limit_s,
        releasing,
        pod_sets=() if of is None else (replace(of, id=PodSetId(f"{name}.main")),),
    )


def snapshot(
    *,
    nodes: Iterable[NodeView] = (),
    clusters: Iterable[ClusterView] = (),
    queues: Iterable[QueueView] = (),
    pending: Iterable[PendingView] = (),
    holding: Iterable[HoldingView] = (),
    cohorts: Iterable[CohortView] = (),
    levels: str = "",
) -> Snapshot:
    """`nodes` make up the one cluster "c1". Tenants that are only named hang below the fleet."""
    fleet = tuple(clusters) or (cluster("c1", nodes),)
    queues, tree = tuple(queues), with_named(cohorts, queues)
    return Snapshot(
        AT,
        FLAVORS,
        fleet,
        queues,
        tuple(pending),
        tuple(holding),
        tree,
        levels=tuple(levels.split()),
    )


def with_named(
    cohorts: Iterable[CohortView], queues: Iterable[QueueView]
) -> tuple[CohortView, ...]:
    given = {cohort.id: cohort for cohort in cohorts}
    named = {queue.cohort: CohortView(queue.cohort) for queue in queues if queue.cohort}
    return tuple((named | given).values())


def holds(admit: Admit, of: PendingView, *, since_s: int = 0) -> HoldingView:
    """What an admitted workload holds from then on."""
    return HoldingView(
        of.id,
        of.project,
        admit.cluster,
        of.priority,
        of.preemptible,
        AT - since_s,
        tuple(held_at(place, place.rank, f"{of.id}-{place.rank}") for place in admit.places),
        AT - since_s,
        of.run_time_limit_s,
        pod_sets=of.pod_sets,
        user=of.user,
        topology=of.topology,
        array=of.array,
    )


def held_at(place: Place, rank: int, name: str) -> HeldView:
    """What a pod of that rank and name holds there."""
    return HeldView(
        PlacementId(name),
        place.pod_set,
        place.node,
        place.flavor,
        place.amount_milli,
        place.cpu_milli,
        place.memory_mib,
        place.spans,
        rank,
    )


class Outcome:
    """A plan, to be asked by name."""

    def __init__(self, made: Plan) -> None:
        self.plan = made
        self.admits = {a.workload: a for a in made.admits}
        self.holds = {id: hold for hold in made.holds for id in hold.workloads}

    def started(self) -> list[str]:
        """In the order in which they were admitted."""
        return [a.workload for a in self.plan.admits]

    def places(self, name: str) -> tuple[Place, ...]:
        return self.admits[WorkloadId(name)].places

    def nodes(self, name: str) -> list[str]:
        return [p.node for p in self.places(name)]

    def spans(self, name: str) -> list[tuple[str, int, int]]:
        return [(d, s.start, s.end) for p in self.places(name) for d, s in p.spans]

    def hold(self, name: str) -> Hold:
        return self.holds[WorkloadId(name)]

    def reason(self, name: str) -> ReasonCode:
        return self.hold(name).reason.code

    def waits(self, name: str) -> bool:
        """Whether something is being evicted, or on its way back, for it."""
        hold = self.holds.get(WorkloadId(name))
        return hold is not None and hold.reason.code is ReasonCode.WAITING_FOR_PREEMPTION

    def numbers(self, name: str) -> dict[str, int | str]:
        return dict(self.hold(name).reason.numbers)

    def victims(self) -> list[tuple[str, str, str]]:
        """(victim, preemptor, rule)"""
        return sorted((p.victim, p.preemptor, p.rule.value) for p in self.plan.preempts)


def decide(
    of: Snapshot, *, preemption: bool = True, max_victims: int = 16, max_admits: int = 2000
) -> Outcome:
    policy = Policy(preemption=preemption, max_victims=max_victims, max_admits=max_admits)
    return Outcome(plan(of, policy))
