"""A large fleet, drawn from a seed: nodes of eight GPUs, a tree of queues, and work that waits."""

from dataclasses import replace
from random import Random

from scheduler.core.snapshot import (
    ClusterView,
    CohortView,
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    NodeView,
    PendingView,
    PodSetView,
    QueueView,
    QuotaView,
    Snapshot,
)
from scheduler.core.units import (
    ONE_MILLI,
    ClusterId,
    CohortId,
    DeviceId,
    FlavorId,
    NodeId,
    PodSetId,
    ProjectId,
    WorkloadId,
)

AT = 1_800_000_000
GPUS = 8
TENANTS = 20
DEPARTMENTS = 5
PRIORITIES = (0, 0, 0, 50, 100)
_H100, _SMALL, _LARGE = (FlavorId(name) for name in ("h100", "a100-1g.10gb", "a100-3g.40gb"))
_FLAVORS = (
    FlavorView(_H100, "h100", FlavorKind.WHOLE, "H100-80GB"),
    FlavorView(_SMALL, "a100-1g.10gb", FlavorKind.MIG, "A100-80GB", "1g.10gb"),
    FlavorView(_LARGE, "a100-3g.40gb", FlavorKind.MIG, "A100-80GB", "3g.40gb"),
)


def fleet(*, pending: int, nodes: int, queues: int, seed: int = 1) -> Snapshot:
    """Each tenth node is cut into MIG slices on demand; nothing runs.

    Of the work six tenths want one GPU, two tenths are gangs of 2 to 16 pods with 1 to 8 GPUs, and
    two tenths MIG slices. Projects hang below departments, and these below tenants; nominal quota
    is a tenth more than the hardware, and every level has limits here and there.
    """
    random = Random(seed)
    return Snapshot(
        at=AT,
        flavors=_FLAVORS,
        clusters=(ClusterView(ClusterId("c"), "c", tuple(_node(i) for i in range(nodes))),),
        queues=_queues(random, nodes, queues),
        pending=tuple(waiting(random, i, queues) for i in range(pending)),
        cohorts=_cohorts(random),
    )


def with_limits(of: Snapshot, *, seed: int = 7) -> Snapshot:
    """The same, with run-time limits of ten minutes to ten hours on a third of what waits; half of
    it submitted within the guard's half hour, and half up to eleven hours ago."""
    random = Random(seed)

    def limited(pending: PendingView) -> PendingView:
        limit_s = random.choice((600, 1200, 3600, 36_000)) if random.random() < 1 / 3 else None
        waited_s = random.randrange(*((1, 1800) if random.random() < 0.5 else (1800, 40_000)))
        return replace(pending, run_time_limit_s=limit_s, submitted_at=of.at - waited_s)

    return replace(of, pending=tuple(map(limited, of.pending)))


def waiting(random: Random, i: int, queues: int) -> PendingView:
    """The ith workload."""
    kind, count, gpus, flavor = random.random(), 1, 1, _H100
    if 0.6 <= kind < 0.8:
        count, gpus = random.choice((2, 4, 8, 16)), random.choice((1, 2, 4, 8))
    elif kind >= 0.8:
        flavor = random.choice((_SMALL, _LARGE))
    pod_set = PodSetView(
        PodSetId(f"s{i:07}"), count, count, 4000 * gpus, 16384 * gpus, gpus, ONE_MILLI, (flavor,)
    )
    return PendingView(
        WorkloadId(f"w{i:07}"),
        ProjectId(f"p{random.randrange(queues):05}"),
        random.choice(PRIORITIES),
        True,
        AT - 100_000 + i // 2,
        (pod_set,),
    )


def _node(i: int) -> NodeView:
    mode, model = DeviceMode.WHOLE, "H100-80GB"
    if i % 10 == 9:
        mode, model = DeviceMode.MIG_DYNAMIC, "A100-80GB"
    name = f"n{i:06}"
    devices = tuple(DeviceView(DeviceId(f"{name}/{d}"), d, model, mode) for d in range(GPUS))
    return NodeView(NodeId(name), name, 128_000, 1 << 20, devices, counted=True)


def _cohorts(random: Random) -> tuple[CohortView, ...]:
    found = []
    for t in range(TENANTS):
        tenant = CohortId(f"t{t:02}")
        found.append(CohortView(tenant, None, random.randint(1, 3)))
        for d in range(DEPARTMENTS):
            limit = random.choice((None, None, 200 * ONE_MILLI))
            quota = QuotaView(_H100, 0, limit)
            found.append(CohortView(CohortId(f"t{t:02}/{d}"), tenant, 1, (quota,)))
    return tuple(found)


def _queues(random: Random, nodes: int, queues: int) -> tuple[QueueView, ...]:
    found = []
    for q in range(queues):
        tenth = max(1, nodes * GPUS * ONE_MILLI // 10 // queues)
        found.append(
            QueueView(
                ProjectId(f"p{q:05}"),
                CohortId(f"t{q % TENANTS:02}/{q // TENANTS % DEPARTMENTS}"),
                random.randint(1, 3),
                (
                    QuotaView(_H100, 10 * tenth, lending_limit_milli=random.choice((None, tenth))),
                    QuotaView(_SMALL, 4 * tenth),
                    QuotaView(_LARGE, tenth),
                ),
            )
        )
    return tuple(found)
