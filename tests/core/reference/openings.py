"""What seldom comes about by chance, told from the beginning: a machine opens with one of these,
and goes on from there. Each says which cases it reaches, whatever else was drawn."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil

from scheduler.core.moving.defragment import defragment
from scheduler.core.policy import Policy
from scheduler.core.snapshot import BudgetView, Isolation, PodSetView, ReservationView
from scheduler.core.units import BudgetId, ClusterId, CohortId, FlavorId, ProjectId, WorkloadId
from tests.core.build import Quota, cpu_pods, job, milli, pods
from tests.core.reference import budgets, defragmentations, windows
from tests.core.reference.machine import MEMBERS, Fleet, Opening
from tests.core.reference.moves import RESTS_S
from tests.core.reference.told import told
from tests.core.reference.tried import Case
from tests.core.reference.world import CLUSTERS, PROJECTS, Queue


def opening(*reaches: Case) -> Callable[[Callable[[Fleet], None]], Opening]:
    return lambda tell: Opening(tell, frozenset(reaches))


@opening(
    Case.STARTS,
    Case.GANG,
    Case.FIRM,
    Case.LIMIT,
    Case.LIMIT_USED_UP,
    Case.LIMIT_TOLD,
    Case.PRIORITY,
    Case.RECLAIM,
    Case.SHRINK_PRIORITY,
    Case.SHRINK_RECLAIM,
    Case.GUARANTEE,
    Case.LEAST_RUN,
    Case.FIRM_SPARED,
    Case.UNPREEMPTED,
)
def taking_back(fleet: Fleet) -> None:
    """On two nodes of three devices `a` borrows what is `b`'s, which asks for it bit by bit; then
    `a` makes room for what it prefers itself."""
    own(fleet, a=3, b=3)
    fleet.world.queues = dict.fromkeys(PROJECTS, Queue(min_run_time_s=100))
    for gangs in ([pods(3, least=1)], [pods()] * 3):
        for of in gangs:
            ask(fleet, "a", of)
        fleet.plan()
    for project, of, priority in (
        ("a", pods(), 2),  # pods of the gang go, one by one
        ("b", pods(), 0),
        ("b", pods(2), 0),  # all of others
        ("a", pods(), 2),
    ):
        ask(fleet, project, of, priority=priority)
        fleet.plan(preemption=False)
        fleet.plan()
        leave(fleet)
    ask(fleet, "c", pods())
    fleet.plan()
    fleet.world.end(max(id for id, held in fleet.world.holding.items() if held.project == "a"))
    for priority in (1, 0):  # on what is guaranteed, and then with nothing left of that
        ask(fleet, "a", pods(), preemptible=False, priority=priority)
        fleet.plan()
    for id, held in [*fleet.world.holding.items()]:
        if held.project == "a" and held.preemptible:
            fleet.world.end(id)
    fleet.plan()
    ask(fleet, "a", pods(2), priority=2)
    fleet.plan()  # those that would have to go have just begun
    fleet.plan()
    leave(fleet)
    ask(fleet, "a", pods(3), priority=3)  # for which more than these would have to go
    fleet.plan(after_s=120)


@opening(
    Case.FREES,
    Case.IDLE_ON,
    Case.QUOTA,
    Case.SHRINK_QUOTA,
    Case.ENFORCED,
    Case.ENFORCED_ORDER,
    Case.SPARED,
    Case.QUEUE_HELD,
    Case.GATE,
    Case.HARDWARE_HELD,
)
def stopping(fleet: Fleet) -> None:
    """Two lie idle until a moment before their time, and then until that; then the quota of what
    runs is lowered, under which some of it may stay; then all is shut."""
    world = fleet.world
    own(fleet, a=6)
    _lie_idle(fleet, told_after_s=120)
    _lie_idle(fleet, told_after_s=250)
    ask(fleet, "a", pods(3, least=2))
    ask(fleet, "a", pods(), priority=1)
    fleet.plan()
    for _ in range(2):  # which lose less, as they run for less long
        ask(fleet, "a", pods())
        fleet.plan()
    for nominal in (4, 2):
        world.quotas["a", "h100"] = Quota(nominal, 0)
        world.enforced["a", "h100"] = world.at + 60
        world.is_as_planned = False
        fleet.plan()
        leave(fleet)
    world.held |= {"b", CLUSTERS[0]}
    ask(fleet, "b", pods())
    world.shut.add(ask(fleet, "a", pods()))
    del world.enforced["a", "h100"]
    own(fleet, a=6)
    ask(fleet, "a", pods())
    fleet.plan()
    world.held.clear()
    fleet.plan()


def _lie_idle(fleet: Fleet, *, told_after_s: int) -> None:
    """Told early, by a time-out that was shorter then, it has to be idle for longer; told late it
    has its warning."""
    world, timeout_s, warning_s = fleet.world, 300, 120
    world.queues["a"] = Queue(idle_timeout_s=240, idle_warning_s=warning_s)
    idle = ask(fleet, "a", pods(6))
    fleet.plan()
    since = world.at
    world.holding[idle] = replace(world.holding[idle], idle_since=since)
    fleet.plan(after_s=told_after_s)
    world.queues["a"] = Queue(idle_timeout_s=timeout_s, idle_warning_s=warning_s)
    due_at = since + max(timeout_s, told_after_s + warning_s)
    fleet.plan(after_s=due_at - 1 - world.at)
    fleet.plan(after_s=1)
    leave(fleet)


@opening(
    Case.RESERVED,
    Case.RESERVED_ABOVE,
    Case.RESERVED_TOLD,
    Case.RESERVED_RIGHTLY,
    Case.RESERVED_EVICTS,
    Case.COVERED,
    Case.COVERED_GROWTH,
    Case.GROWS,
    Case.BUDGET_TOLD,
    Case.BUDGET,
    Case.BUDGET_ON,
    Case.FIRM_STOPPED,
    Case.PART,
)
def promising(fleet: Fleet) -> None:
    """An elastic gang runs with one of three pods under a budget that covers one more; then of
    four that are free by then two are reserved. Later all are held but one, which is
    reserved: who takes back what is its own leaves that. Then all is reserved for a department:
    only who is of it starts. Last, hours are used up."""
    world = fleet.world
    own(fleet, a=6, b=6)
    first = ask(fleet, "b", pods(5))
    fleet.plan()
    ask(fleet, "a", pods(3, least=1), limit_s=3600)
    fleet.plan()
    made = BudgetView(
        BudgetId("a"), "a", 0, 0, ends_at=world.at + 3600, project=ProjectId("a"), safe=True
    )
    coming = budgets.coming_milli_s(world, "a", made)
    world.budgets["a"] = replace(made, limit_milli_s=ceil(coming) + milli(4000))
    world.used["a"] = Fraction(0)
    world.is_as_planned = False
    world.end(first)
    fleet.plan()
    ask(fleet, "a", pods(), limit_s=3600)
    fleet.plan()
    ask(fleet, "a", pods(), limit_s=300)
    fleet.plan()
    starts_at = world.at + 300
    world.reservations = [
        ReservationView(
            ProjectId("b"), FlavorId(windows.FLAVOR), milli(2), starts_at, starts_at + 600, 0
        )
    ]
    for _ in range(3):
        ask(fleet, "d", pods())
    own(fleet, a=6, b=6, d=6)
    fleet.plan()
    world.budgets.clear()
    for id in [*world.holding]:
        world.end(id)
    for id in [*world.waiting]:
        world.cancel(id)
    own(fleet, b=3, d=4)
    for _ in range(5):
        ask(fleet, "a", pods())
    fleet.plan()
    starts_at = world.at + 7200
    world.reservations = [
        ReservationView(
            ProjectId("c"), FlavorId(windows.FLAVOR), milli(1), starts_at, starts_at + 600, 0
        )
    ]
    ask(fleet, "b", pods(2))
    fleet.plan()
    leave(fleet)
    _reserve_for_a_department(fleet)
    _use_up(fleet)


def _reserve_for_a_department(fleet: Fleet) -> None:
    world = fleet.world
    for id in [*world.holding]:
        world.end(id)
    window = world.at, world.at + 600, 0, CohortId("vision")
    world.reservations = [ReservationView(None, FlavorId(windows.FLAVOR), milli(6), *window)]
    own(fleet, a=6, c=6)
    ask(fleet, "a", pods())
    ask(fleet, "c", pods())
    fleet.plan()
    world.reservations.clear()
    for id in [*world.waiting]:
        world.cancel(id)


def _use_up(fleet: Fleet) -> None:
    """A tenant's hours last for one plan and not for the next one, while its work runs."""
    world = fleet.world
    for id in [*world.holding]:
        world.end(id)
    own(fleet, a=6)
    world.quotas["a", "cpu"] = Quota(6, None)
    for of in (pods(), cpu_pods()):
        ask(fleet, "a", of, preemptible=False)
    fleet.plan()
    world.budgets["lab"] = BudgetView(
        BudgetId("lab"), "lab", milli(90), 0, world.at + 3600, cohort=CohortId("lab"), hard=True
    )
    world.used["lab"] = Fraction(0)
    world.is_as_planned = False
    fleet.plan()
    fleet.plan()
    leave(fleet)
    world.budgets.clear()


@opening(
    Case.KEEPS,
    Case.KEEPS_UNDATED,
    Case.KEPT_FROM,
    Case.PROMISE_DUE,
    Case.PROMISE_STANDS,
    Case.NO_ROOM,
)
def waiting(fleet: Fleet) -> None:
    """A pod that needs a node waits until one of two ends, and meanwhile another goes ahead; then
    one waits for what has no end."""
    fleet.world.policy = Policy(guard_s=120)
    ask(fleet, "a", pods(gpus=2), limit_s=900)
    ask(fleet, "a", pods(gpus=3), limit_s=1200)
    fleet.plan()
    ask(fleet, "a", pods(gpus=3))
    for _ in range(3):
        fleet.plan()
    ends_late = ask(fleet, "a", pods(), limit_s=1200)
    ask(fleet, "a", pods(), limit_s=300)
    fleet.plan()
    fleet.world.cancel(ends_late)
    for after_s in (300, 359, 1, 600):
        fleet.plan(after_s=after_s)
    for _ in range(2):
        ask(fleet, "a", pods(gpus=3))
    for _ in range(3):
        fleet.plan()


@opening(Case.CONSOLIDATE, Case.LANDS, Case.LANDS_LATER)
def scattered(fleet: Fleet) -> None:
    """One device is held of each of three nodes, and a pod needs three on one; at first moving any
    would lose too much."""
    world = fleet.world
    world.policy = Policy(consolidation_budget_milli_s=milli(50))
    for _ in range(9):
        ask(fleet, "a", pods())
    fleet.plan()
    _keep_one_a_node(fleet)
    ask(fleet, "b", pods(gpus=3))
    fleet.plan()
    world.policy = Policy(consolidation_budget_milli_s=10**9)
    fleet.plan()
    fleet.plan()
    leave(fleet)


@opening(Case.NODES_GAINED, Case.SLICES_GAINED)
def sparse(fleet: Fleet) -> None:
    """One device is held of some nodes, and a slice in each half of others; a large one waits."""
    for _ in range(12):
        ask(fleet, "a", pods())
    for _ in range(14):
        ask(fleet, "a", pods(flavors="1g"))
    fleet.plan()
    _keep_one_a_node(fleet)
    ask(fleet, "a", pods(flavors="3g"))
    fleet.plan()
    carry_out_a_defragmentation(fleet, budget_milli_s=milli(130))  # for two that ran for 60 s


@opening(Case.BETTER, Case.STAYS, Case.STAYS_FOR_OTHERS, Case.RESTS, Case.LANDS, Case.LANDS_LATER)
def climbing(fleet: Fleet) -> None:
    """Some begin on the last of their flavors, and who asked for it goes up as the others come
    free: not while somebody waits for that, one by one where moving two would lose too much, and
    none twice on a day."""
    world = fleet.world
    world.policy = Policy(consolidation_budget_milli_s=milli(190))
    best = ask(fleet, "b", pods(gpus=3))
    *second, _ = [ask(fleet, "b", pods(flavors="a30")) for _ in range(3)]
    fleet.plan()
    ladder = pods(flavors="h100 a30 t4")
    world.asking |= {ask(fleet, "a", ladder) for _ in range(3)}
    ask(fleet, "a", ladder)
    fleet.plan()
    other = ask(fleet, "d", pods(3, flavors="a30"))
    for id in second:
        world.end(id)
    fleet.plan()
    world.cancel(other)
    fleet.plan()
    fleet.plan()
    leave(fleet)
    world.end(best)
    fleet.plan()
    world.policy = Policy(consolidation_budget_milli_s=10**9)
    fleet.plan(after_s=RESTS_S // 2)
    leave(fleet)
    rests_until = min(world.moved.values()) + RESTS_S
    fleet.plan(after_s=rests_until - 1 - world.at)
    fleet.plan(after_s=1)
    leave(fleet)


@opening(Case.BY_MEMORY, Case.REPLICAS, Case.SLICE, Case.ISOLATED)
def sharing(fleet: Fleet) -> None:
    """By memory, in thousandths, a slice, and neighbours nearer than is accepted."""
    share, by_memory = pods(flavors="t4share", share=0.5), pods(flavors="t4share 1g")
    ask(fleet, "a", replace(by_memory, gpu_memory_mib=5120))
    ask(fleet, "a", replace(by_memory, flavors=(FlavorId("1g"),)))
    ask(fleet, "a", share)
    ask(fleet, "b", replace(share, least_isolation=Isolation.HARDWARE))
    fleet.plan()


def carry_out_a_defragmentation(fleet: Fleet, *, budget_milli_s: int) -> None:
    """Of the first cluster."""
    of = told(fleet.world)
    made = defragment(snapshot=of, cluster=ClusterId(CLUSTERS[0]), budget_milli_s=budget_milli_s)
    defragmentations.check(fleet.world, made, budget_milli_s)
    fleet.world.carry_out(defragmentations.as_plan(fleet.world, made))
    leave(fleet)


def own(fleet: Fleet, **nominal: int) -> None:
    """Of whole devices; all else may be borrowed."""
    for member in MEMBERS:
        fleet.world.quotas[member, "h100"] = Quota(nominal.get(member, 0), None)
    fleet.world.is_as_planned = False


def ask(
    fleet: Fleet,
    project: str,
    of: PodSetView,
    *,
    priority: int = 0,
    limit_s: int | None = None,
    preemptible: bool = True,
) -> WorkloadId:
    made = job("", project, of, priority=priority, limit_s=limit_s)
    return fleet.ask(replace(made, preemptible=preemptible))


def leave(fleet: Fleet) -> None:
    """All that was told to go has gone."""
    for id in fleet.leaving():
        fleet.world.seen_gone(id)
    for id in fleet.shrinking():
        fleet.world.pods_seen_gone(id)
    fleet.plan()


def _keep_one_a_node(fleet: Fleet) -> None:
    """Of those that run; of slices one in each half of a device."""
    seen = set[tuple[str, int]]()
    for id, held in sorted(fleet.world.holding.items()):
        (pod,) = held.placements
        where = pod.node, min(span.start // 4 for _, span in pod.spans)
        if pod.flavor == "h100":
            where = pod.node, 0
        if where in seen:
            fleet.world.end(id)
        seen.add(where)
