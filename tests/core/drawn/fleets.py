"""Random small fleets with everything in them, for properties."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from scheduler.core.snapshot import (
    BudgetView,
    CapsView,
    ClusterView,
    CohortView,
    DeviceMode,
    HoldingView,
    Isolation,
    NodeView,
    PastView,
    PendingView,
    Placing,
    PodSetView,
    QueueView,
    QuotaView,
    Snapshot,
    TopologyView,
)
from scheduler.core.submitted import ArrayView
from scheduler.core.units import ArrayId, BudgetId, FlavorId, UserId
from scheduler.core.waits import UnmetView
from tests.core.build import (
    AT,
    H100,
    T4,
    Quota,
    cluster,
    cohort_of,
    cpu_pods,
    decide,
    holds,
    job,
    node,
    pods,
    queue_of,
    snapshot,
)
from tests.core.drawn.accepted import accepting, closed, unordered
from tests.core.drawn.foreign import with_foreign
from tests.core.drawn.gated import gated
from tests.core.drawn.growing import growing
from tests.core.drawn.losing import losing
from tests.core.drawn.rated import rated
from tests.core.drawn.reordered import reordered
from tests.core.drawn.together import wishing

PROJECTS = ("a", "b", "c")
CUT = (("2g.20gb", 0, 2), ("1g.10gb", 2, 3), ("1g.10gb", 3, 4), ("3g.40gb", 4, 8))
LEAST_RUN_S = 300
"""The longest that any project's work may run before it is evicted."""
CUT_INTO = (1000, 4, 3)
"""Replicas of a shared device, on the first, second and third node of a cluster."""
QUOTED = ("h100", "_1g", "_1gme", "_2g", "_3g", "t4", "t4share", "cpu")


def snapshots(most_pending: int = 8) -> st.SearchStrategy[Snapshot]:
    """Fleets by seed: hypothesis would draw mostly empty ones, and slowly."""
    sizes = st.integers(0, 10), st.integers(0, most_pending)
    return st.builds(fleet, st.integers(0, 2**32), *sizes)


def jobs(name: str) -> st.SearchStrategy[PendingView]:
    kinds = sorted({kind for of in _KINDS.values() for kind in of})
    return st.builds(lambda seed: _job(Random(seed), name, kinds), st.integers(0, 2**32))


def fleet(seed: int, running: int, pending: int) -> Snapshot:
    """What holds came to hold by a plan, under other quotas, when all was well.

    So nothing is double-booked, while usage may be over quota and on what is not usable now.
    """
    pick = Random(seed)
    now = with_foreign(Random(seed + 154), _clusters(pick))
    kinds = [kind for c in now for n in c.nodes for kind in _KINDS[_offers(n)]]
    well = tuple(
        replace(c, usable=True, nodes=tuple(replace(n, usable=True) for n in c.nodes)) for c in now
    )
    old = {f"r{i}": replace(_job(pick, f"r{i}", kinds), not_before=0) for i in range(running)}
    plenty = [queue_of(project, dict.fromkeys(QUOTED, 1000)) for project in PROJECTS]
    before = snapshot(clusters=well, queues=plenty, pending=old.values())
    holding = [
        replace(
            holds(admit, old[admit.workload], since_s=pick.randrange(500)),
            releasing=pick.random() < 0.15,
        )
        for admit in decide(before).plan.admits
    ]
    cohorts = _owning(Random(seed + 33), _cohorts(pick))
    lot = Random(seed + 44)
    queues = [_poor(lot, _queue(pick, project)) for project in PROJECTS]
    queues = [replace(queue, past=_past(Random(seed + i))) for i, queue in enumerate(queues)]
    new = [_job(pick, f"w{i}", kinds) for i in range(pending)]
    of = snapshot(clusters=now, queues=queues, pending=new, holding=holding, cohorts=cohorts)
    of = _saved(Random(seed + 77), _capped(Random(seed + 99), of))
    of = _arrayed(Random(seed + 33), _modelled(Random(seed + 11), of))
    of = reordered(Random(seed + 110), gated(Random(seed + 66), of))
    of = wishing(Random(seed + 88), _standing(Random(seed + 55), of))
    of = closed(Random(seed + 132), accepting(Random(seed + 121), of))
    of = growing(Random(seed + 165), unordered(Random(seed + 143), of))
    of = losing(Random(seed + 176), _budgeted(Random(seed + 22), of))
    return rated(Random(seed + 187), of)


def _capped(pick: Random, of: Snapshot) -> Snapshot:
    """With submitters, and caps in some projects; at times one is held."""

    def most(*values: int) -> int | None:
        return pick.choice([None, *values])

    def caps() -> CapsView | None:
        found = CapsView(most(1, 2, 4), most(1, 2), most(500, 1000, 2000, 4000))
        return found if pick.random() < 0.4 else None

    users = [UserId("u"), UserId("v")]
    return replace(
        of,
        queues=tuple(
            replace(q, held_by=("a",) if pick.random() < 0.05 else (), caps=caps())
            for q in of.queues
        ),
        pending=tuple(replace(p, user=pick.choice(users)) for p in of.pending),
        holding=tuple(replace(h, user=pick.choice(users)) for h in of.holding),
    )


def _budgeted(pick: Random, of: Snapshot) -> Snapshot:
    """At times with budgets, some of them in safe mode, some used up, some over."""
    if pick.random() < 0.5:
        return of
    owners = [*((q.project, None) for q in of.queues), *((None, c.id) for c in of.cohorts)]
    budgets = [
        BudgetView(
            BudgetId(f"budget-{nth}"),
            f"budget-{nth}",
            limit_milli_s=pick.choice([0, 500_000, 2_000_000, 9_000_000]),
            used_milli_s=pick.choice([0, 0, 400_000, 1_500_001]),
            ends_at=AT + pick.choice([-5, 0, 60, 100, 1000, 3600]),
            project=project,
            cohort=cohort,
            safe=pick.random() < 0.6,
        )
        for nth, (project, cohort) in enumerate(pick.choices(owners, k=3))
    ]
    return replace(of, budgets=tuple(budgets))


def _modelled(pick: Random, of: Snapshot) -> Snapshot:
    """At times with quotas over all of a model, of some projects and of a tenant."""
    if pick.random() < 0.5:
        return of

    def more(part: float) -> tuple[QuotaView, ...]:
        quotas: dict[str, float | Quota] = {
            model: Quota(
                pick.choice([0, 1, 3.5, 7, 14, 28]),
                pick.choice([None, None, None, 0, 1, 7]),
                pick.choice([None, None, None, 0, 1.75]),
            )
            for model in ("h100all", "t4all")
            if pick.random() < part
        }
        return queue_of("", quotas).quotas

    return replace(
        of,
        queues=tuple(replace(q, quotas=(*q.quotas, *more(0.7))) for q in of.queues),
        cohorts=tuple(replace(c, quotas=(*c.quotas, *more(0.2))) for c in of.cohorts),
    )


def _arrayed(pick: Random, of: Snapshot) -> Snapshot:
    """With some work in arrays, of which few may run at once, and some that waits for others."""
    most = {queue.project: pick.randint(1, 2) for queue in of.queues}

    def array(one: PendingView | HoldingView) -> ArrayView | None:
        if one.project not in most or pick.random() < 0.6:
            return None
        return ArrayView(ArrayId(f"{one.project}-array"), most[one.project])

    def waits() -> UnmetView | None:
        return UnmetView(1, "r0") if pick.random() < 0.05 else None

    return replace(
        of,
        pending=tuple(replace(p, array=array(p), waits_for=waits()) for p in of.pending),
        holding=tuple(replace(h, array=array(h)) for h in of.holding),
    )


def _saved(pick: Random, of: Snapshot) -> Snapshot:
    """With checkpoints of some work, at times of an earlier run, and least run times."""
    return replace(
        of,
        queues=tuple(
            replace(q, min_run_time_s=pick.choice([0, 0, 0, 100, LEAST_RUN_S])) for q in of.queues
        ),
        holding=tuple(
            replace(h, checkpointed_at=pick.choice([None, AT - pick.randrange(600)]))
            for h in of.holding
        ),
    )


def _standing(pick: Random, of: Snapshot) -> Snapshot:
    """Nodes in racks of zones, some unknown; work that wants to be together; spread flavors."""

    def node(on: NodeView) -> NodeView:
        return on if pick.random() < 0.15 else replace(on, topology=_at(pick))

    def wish() -> TopologyView | None:
        level = pick.choice(["zone", "rack", "rack", "nowhere"])
        return TopologyView(level, pick.random() < 0.6) if pick.random() < 0.3 else None

    return replace(
        of,
        levels=("zone", "rack"),
        flavors=tuple(
            replace(f, placing=Placing.SPREAD)
            if f.id in {"h100", "cpu"} and pick.random() < 0.2
            else f
            for f in of.flavors
        ),
        clusters=tuple(replace(c, nodes=tuple(map(node, c.nodes))) for c in of.clusters),
        pending=tuple(replace(p, topology=wish()) for p in of.pending),
        holding=tuple(replace(h, topology=wish()) for h in of.holding),
    )


def _at(pick: Random) -> tuple[str, ...]:
    return pick.choice(["", "z1", "z1"]), pick.choice(["", "r1", "r1", "r2"])


def _clusters(pick: Random) -> tuple[ClusterView, ...]:
    return tuple(
        cluster(
            f"c{i}",
            [_node(pick, f"n{i}{k}") for k in range(pick.randint(1, 3))],
            usable=pick.random() < 0.95,
        )
        for i in range(pick.choice([1, 1, 2]))
    )


def _node(pick: Random, name: str) -> NodeView:
    kind = pick.choice(["whole", "whole", "static", "dynamic", "shared", "cores"])
    gpus = 0 if kind == "cores" else pick.randint(1, 4)
    made = node(
        name,
        gpus,
        T4 if kind == "shared" else H100,
        cores=pick.choice([4, 8, 8, 16]),
        memory_gib=pick.choice([4, 16]),
        dynamic=kind == "dynamic",
        cut=CUT if kind == "static" else (),
        shares=Isolation.MEMORY if kind == "shared" else None,
        usable=pick.random() < 0.95,
        replicas=CUT_INTO[int(name[-1])] if kind == "shared" else 1000,
    )
    if gpus and pick.random() < 0.15:
        made = replace(made, devices=(replace(made.devices[0], usable=False), *made.devices[1:]))
    return made


def _past(pick: Random) -> tuple[PastView, ...]:
    """At times equal to another project's."""
    amounts = {flavor: pick.choice([0, 0, 5000, 7000]) for flavor in ("h100", "t4", "gone")}
    return tuple(PastView(FlavorId(flavor), amount) for flavor, amount in amounts.items())


def _cohorts(pick: Random) -> list[CohortView]:
    """Tenants s and t; at times t is a department of s, and has limits of its own."""
    limited = pick.random() < 0.4
    quotas = _quotas(pick, [0, 0, 0, 2], 0.5) if limited else {}
    parent = pick.choice(["", "s"])
    return [
        cohort_of("s", {}, weight=pick.choice([1, 2])),
        cohort_of("t", quotas, parent=parent, weight=pick.choice([0, 1, 3])),
    ]


def _owning(pick: Random, cohorts: Sequence[CohortView]) -> list[CohortView]:
    """Half of them with quota of their own, for all below them."""
    return [
        replace(
            cohort_of(cohort.id, _quotas(pick, [0, 1, 2, 4], 0.8)),
            parent=cohort.parent,
            weight=cohort.weight,
        )
        if pick.random() < 0.5
        else cohort
        for cohort in cohorts
    ]


def _poor(pick: Random, queue: QueueView) -> QueueView:
    """At times without nominal quota of its own."""
    if pick.random() < 0.8:
        return queue
    quotas = (replace(quota, nominal_milli=0) for quota in queue.quotas)
    return replace(queue, quotas=tuple(quotas))


def _queue(pick: Random, project: str) -> QueueView:
    quotas = _quotas(pick, [0, 1, 2, 4, 8, 16], 0.95)
    tenant = pick.choice(["s", "t", ""])
    return queue_of(project, quotas, tenant=tenant, weight=pick.choice([0, 1, 1, 3]))


def _quotas(pick: Random, nominal: Sequence[int], part: float) -> dict[str, float | Quota]:
    return {
        flavor: Quota(
            pick.choice(nominal),
            pick.choice([None, None, None, None, 0, 2]),
            pick.choice([None, None, None, None, 0, 1]),
        )
        for flavor in QUOTED
        if pick.random() < part
    }


_KINDS = {
    "whole": ["h100", "h100", "h100", "t4 h100"],
    "mig": ["1g", "1gme", "2g 1g", "3g"],
    "shared": ["share", "share", "t4"],
    "cores": ["cpu"],
}


def _offers(on: NodeView) -> str:
    if not on.devices:
        return "cores"
    if on.devices[0].model == T4:
        return "shared"
    return "whole" if on.devices[0].mode is DeviceMode.WHOLE else "mig"


def _pod_set(pick: Random, name: str, kinds: Sequence[str]) -> PodSetView:
    kind = pick.choice(kinds) if pick.random() < 0.9 else pick.choice(["h100", "3g", "cpu"])
    count = pick.choice([1, 1, 1, 2, 3])
    cores = pick.choice([0.5, 1, 3])
    if kind == "cpu":
        return cpu_pods(count, cores=cores, name=name)
    share = kind == "share"
    return pods(
        count,
        gpus=1 if share else pick.choice([1, 1, 2]),
        flavors="t4share" if share else kind,
        share=pick.choice([0.1, 0.3, 0.5, 0.7, 1]) if share else 1,
        least=pick.randint(1, count),
        cores=cores,
        memory_gib=pick.choice([0.5, 2]),
        name=name,
    )


def _job(pick: Random, name: str, kinds: Sequence[str]) -> PendingView:
    made = job(
        name,
        pick.choice(PROJECTS),
        *(_pod_set(pick, f"s{i}", kinds) for i in range(pick.choice([1, 1, 1, 2]))),
        priority=pick.randrange(3),
        submitted_at=pick.randrange(4),
        clusters=pick.choice(["", "", "", "c0", "c0 c1"]),
        not_before=AT + 60 if pick.random() < 0.1 else 0,
        limit_s=pick.choice([None, 10, 300, 1000]),
    )
    return replace(made, preemptible=pick.random() < 0.8)


def shuffled(of: Snapshot, seed: int) -> Snapshot:
    """The same snapshot with every tuple that has no order in another order."""
    pick = Random(seed)

    def mix[T](items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(pick.sample(items, len(items)))

    mixed = [
        replace(c, nodes=mix(tuple(replace(n, devices=mix(n.devices)) for n in c.nodes)))
        for c in of.clusters
    ]
    return replace(
        of,
        flavors=mix(of.flavors),
        clusters=mix(tuple(mixed)),
        cohorts=mix(tuple(replace(c, quotas=mix(c.quotas)) for c in of.cohorts)),
        queues=mix(tuple(replace(q, quotas=mix(q.quotas)) for q in of.queues)),
        pending=mix(of.pending),
        holding=mix(tuple(replace(h, placements=mix(h.placements)) for h in of.holding)),
        budgets=mix(of.budgets),
        rates=mix(of.rates),
    )
