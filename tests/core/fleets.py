"""Random small fleets with everything in them, for properties."""

from dataclasses import replace

from hypothesis import strategies as st

from scheduler.core.snapshot import (
    ClusterView,
    HoldingView,
    Isolation,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    Snapshot,
)
from scheduler.core.units import ProjectId, WorkloadId
from tests.core.build import (
    AT,
    T4,
    Quota,
    cluster,
    cpu_pods,
    decide,
    holds,
    job,
    node,
    pods,
    queue,
    snapshot,
)

PROJECTS = ("a", "b", "c")
CUT = (("2g.20gb", 0, 2), ("1g.10gb", 2, 3), ("1g.10gb", 3, 4), ("3g.40gb", 4, 8))
QUOTED = ("h100", "_1g", "_1gme", "_2g", "_3g", "t4", "t4share", "cpu")


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeView:
    kind = draw(st.sampled_from(["whole", "static", "dynamic", "shared", "cores"]))
    gpus = 0 if kind == "cores" else draw(st.integers(1, 3))
    made = node(
        name,
        gpus,
        T4 if kind == "shared" else "NVIDIA-H100-80GB-HBM3",
        cores=draw(st.integers(1, 8)),
        memory_gib=draw(st.integers(2, 16)),
        dynamic=kind == "dynamic",
        cut=CUT if kind == "static" else (),
        shares=Isolation.MEMORY if kind == "shared" else None,
        usable=draw(st.integers(0, 9)) > 0,
    )
    if gpus and draw(st.integers(0, 5)) == 0:
        made = replace(made, devices=(replace(made.devices[0], usable=False), *made.devices[1:]))
    return made


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterView, ...]:
    made = []
    for i in range(draw(st.integers(1, 2))):
        count = draw(st.integers(1, 3))
        members = [draw(nodes(f"n{i}{k}")) for k in range(count)]
        made.append(cluster(f"c{i}", members, usable=draw(st.integers(0, 9)) > 0))
    return tuple(made)


def _quota() -> st.SearchStrategy[Quota]:
    limit = st.none() | st.integers(0, 4)
    return st.builds(Quota, st.integers(0, 6), limit, limit)


@st.composite
def queues(draw: st.DrawFn) -> tuple[QueueView, ...]:
    made = []
    for project in PROJECTS:
        flavors = draw(st.lists(st.sampled_from(QUOTED), unique=True, min_size=3))
        tenant = draw(st.sampled_from(["s", "t"]))
        quotas = {flavor: draw(_quota()) for flavor in flavors}
        made.append(queue(project, tenant=tenant, weight=draw(st.integers(0, 3)), **quotas))
    return tuple(made)


@st.composite
def pod_sets(draw: st.DrawFn, name: str) -> PodSetView:
    kind = draw(st.sampled_from(["h100", "1g", "1gme", "2g 1g", "3g", "t4 h100", "share", "cpu"]))
    count = draw(st.integers(1, 3))
    cores = draw(st.sampled_from([0.5, 1, 3]))
    if kind == "cpu":
        return cpu_pods(count, cores=cores, name=name)
    share = draw(st.sampled_from([0.1, 0.3, 0.5, 0.7, 1])) if kind == "share" else 1
    return pods(
        count,
        gpus=1 if kind == "share" else draw(st.integers(1, 2)),
        flavors="t4share" if kind == "share" else kind,
        share=share,
        least=draw(st.integers(1, count)),
        cores=cores,
        memory_gib=draw(st.sampled_from([0.5, 2])),
        name=name,
    )


@st.composite
def jobs(draw: st.DrawFn, name: str) -> PendingView:
    sets = [draw(pod_sets(f"s{i}")) for i in range(draw(st.integers(1, 2)))]
    made = job(
        name,
        draw(st.sampled_from(PROJECTS)),
        *sets,
        priority=draw(st.integers(0, 2)),
        submitted_at=draw(st.integers(0, 3)),
        clusters=draw(st.sampled_from(["", "", "c0", "c0 c1"])),
        not_before=draw(st.sampled_from([0, 0, 0, AT + 60])),
        limit_s=draw(st.none() | st.integers(10, 1000)),
    )
    return replace(made, preemptible=draw(st.booleans()))


def generous(of: Snapshot) -> Snapshot:
    """The same fleet with quota for everything."""
    plenty = {flavor: Quota(1000) for flavor in QUOTED}
    return replace(of, queues=tuple(queue(project, **plenty) for project in PROJECTS))


@st.composite
def snapshots(draw: st.DrawFn, most_pending: int = 6) -> Snapshot:
    """What holds came to hold by a plan, under other quotas, when all was well.

    So nothing is double-booked, while usage may be over quota and on what is not usable now.
    """
    fleet = draw(clusters())
    well = tuple(
        replace(c, usable=True, nodes=tuple(replace(n, usable=True) for n in c.nodes))
        for c in fleet
    )
    old = [draw(jobs(f"r{i}")) for i in range(draw(st.integers(0, 5)))]
    old = [replace(one, not_before=0) for one in old]
    before = generous(snapshot(clusters=well, pending=old))
    by_id = {one.id: one for one in old}
    holding: list[HoldingView] = []
    for admit in decide(before).plan.admits:
        held = holds(admit, by_id[admit.workload], since_s=draw(st.integers(0, 500)))
        holding.append(replace(held, releasing=draw(st.integers(0, 4)) == 0))
    new = [draw(jobs(f"w{i}")) for i in range(draw(st.integers(0, most_pending)))]
    return snapshot(clusters=fleet, queues=draw(queues()), pending=new, holding=holding)


def shuffled(draw: st.DrawFn, of: Snapshot) -> Snapshot:
    """The same snapshot with every tuple that has no order in another order."""

    def mix[T](items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(draw(st.permutations(items)))

    mixed = [
        replace(c, nodes=mix(tuple(replace(n, devices=mix(n.devices)) for n in c.nodes)))
        for c in of.clusters
    ]
    return replace(
        of,
        flavors=mix(of.flavors),
        clusters=mix(tuple(mixed)),
        queues=mix(tuple(replace(q, quotas=mix(q.quotas)) for q in of.queues)),
        pending=mix(of.pending),
        holding=mix(tuple(replace(h, placements=mix(h.placements)) for h in of.holding)),
    )


def waiting_again(held: HoldingView) -> PendingView:
    """A victim back in its queue."""
    return PendingView(
        WorkloadId(held.id),
        ProjectId(held.project),
        held.priority,
        held.preemptible,
        held.admitted_at,
        held.pod_sets,
        held.run_time_limit_s,
    )
