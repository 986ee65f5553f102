"""What happens to a fleet, in whatever order; its plans obey the laws after every step.

`Fleet` is what any of them is about, and `Changing` what happens to most; `test_machine` adds to
them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.policy import Policy
from scheduler.core.snapshot import (
    DeviceMode,
    FlavorKind,
    Isolation,
    NodeView,
    PendingView,
    PodSetView,
)
from scheduler.core.units import WHOLE_DEVICE, Span, WorkloadId
from tests.core.build import A30, BY_NAME, H100, T4, Quota, cpu_pods, job, node, pods
from tests.core.drawn.fleets import shuffled
from tests.core.reference import budgets, laws
from tests.core.reference.told import told
from tests.core.reference.tried import Case
from tests.core.reference.world import CLUSTERS, COHORTS, PROJECTS, Queue, World, parts_of

FLAVORS = ("h100", "1g", "3g", "t4share", "t4slot", "cpu")
MEMBERS = (*PROJECTS, *COHORTS)
KINDS = ("whole", "whole", "cut on demand", "shared", "in replicas")
WHOLE = {"whole": H100, "whole a30": A30, "whole t4": T4}
QUOTAS = st.builds(
    Quota,
    st.integers(0, 3),
    st.sampled_from([None, None, None, 0, 2]),
    st.sampled_from([None, None, None, 0, 1]),
)
POLICIES = st.builds(
    Policy,
    guard_s=st.sampled_from([None, 120, 120, 120]),
    most_kept=st.sampled_from([1, 1, 2]),
    consolidation_budget_milli_s=st.sampled_from([0, 10**6, 10**9, 10**9]),
)


ALL = {DeviceMode.WHOLE: WHOLE_DEVICE, DeviceMode.MIG_DYNAMIC: Span(0, 8)}
"""Of a device that is given so."""


def hardware(kind: str, name: str) -> NodeView:
    if kind in WHOLE:
        return node(name, gpus=3, model=WHOLE[kind], cores=8, memory_gib=8)
    if kind == "cut on demand":
        return node(name, gpus=1, dynamic=True, cores=8, memory_gib=8)
    return node(
        name,
        gpus=2,
        model=T4,
        shares=Isolation.NONE if kind == "in turns" else Isolation.MEMORY,
        cores=8,
        memory_gib=8,
        replicas=1000 if kind == "shared" else 3,
    )


def a_pod_set(flavor: str, *, most: int, least: int, size: int) -> PodSetView:
    """`size` is 1 to 3: devices of a kind that is given whole, else more of one."""
    kind = BY_NAME[flavor].kind  # type: ignore[index]  # a name is an id here
    if kind is FlavorKind.CPU:
        made = cpu_pods(most, cores=size)
    elif kind is FlavorKind.SHARE:
        made = pods(most, flavors=flavor, share=size * 0.3)
    else:
        made = pods(most, flavors=flavor, gpus=size if kind is FlavorKind.WHOLE else 1)
    return replace(made, min_count=min(least, most))


@st.composite
def asked(
    draw: st.DrawFn,
    *,
    flavors: Sequence[str] = (*("h100",) * 4, *FLAVORS),
    projects: Sequence[str] = PROJECTS,
    priorities: Sequence[int] = (0, 0, 1, 2),
    limits_s: Sequence[int | None] = (None, None, 300, 900, 3600),
) -> PendingView:
    """Without a name yet. What is scarce is asked for most."""
    pod_set = a_pod_set(
        draw(st.sampled_from(flavors)),
        most=draw(st.integers(1, 3)),
        least=draw(st.sampled_from([1, 1, 2, 3])),
        size=draw(st.sampled_from([1, 1, 2, 3])),
    )
    made = job(
        "",
        draw(st.sampled_from(projects)),
        pod_set,
        priority=draw(st.sampled_from(priorities)),
        limit_s=draw(st.sampled_from(limits_s)),
    )
    return replace(made, preemptible=draw(st.sampled_from([True, True, True, False])))


@dataclass(frozen=True)
class Opening:
    """What happens first, and what that puts to the test in each run, whatever else is drawn."""

    tell: Callable[["Fleet"], None]
    reaches: frozenset[Case]


class Fleet(RuleBasedStateMachine):
    kinds: tuple[str, ...] = KINDS
    flavors: tuple[str, ...] = FLAVORS
    asks: st.SearchStrategy[PendingView] = asked()
    policies: st.SearchStrategy[Policy] = POLICIES
    levels: tuple[str, ...] = ()
    """Of the topology; with some, every fifth node is in no domain of the innermost."""
    quota: Quota | None = None
    """Of everybody, if not each has its own."""
    steps = 30
    opens: Sequence[Opening] = ()
    """With one of these; with whatever is asked for if there are none."""
    plans_twice = False
    """The same in another order, without a memory."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.memory = Memory()
        self.names: Iterator[int] = count()

    @initialize(
        quotas=st.lists(QUOTAS, min_size=len(MEMBERS), max_size=len(MEMBERS)),
        queue=st.sampled_from([Queue(), Queue(weight=3), Queue(min_run_time_s=300)]),
        data=st.data(),
    )
    def begin(self, quotas: list[Quota], queue: Queue, data: st.DataObject) -> None:
        world = self.world
        world.levels = self.levels
        for member, quota in zip(MEMBERS, quotas, strict=True):
            given = self.quota or quota
            world.quotas |= {(member, flavor): given for flavor in self.flavors}
        for kind in self.kinds:
            self.add_node(kind, CLUSTERS[0])
        opening = data.draw(st.sampled_from(self.opens)) if self.opens else None
        if opening is not None:
            opening.tell(self)
            missed = [case for case in opening.reaches if not world.tried[case]]
            assert not missed, f"not put to the test: {missed}"
        world.queues = dict.fromkeys(PROJECTS, queue)
        world.policy = data.draw(self.policies)
        world.is_as_planned = False
        if opening is None:
            self.submit(data)

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        """A plan follows, as it does on a hint."""
        for each in data.draw(st.lists(self.asks, min_size=2, max_size=8)):
            self.ask(each)
        self.plan()

    def ask(self, of: PendingView) -> WorkloadId:
        """Under a name of its own."""
        id = WorkloadId(f"w{next(self.names)}")
        self.world.submit(replace(of, id=id))
        return id

    @rule(after_s=st.lists(st.sampled_from([60, 120, 300, 600]), min_size=1, max_size=4))
    def time_passes(self, after_s: list[int]) -> None:
        for seconds in after_s:
            self.plan(after_s=seconds)

    @rule()
    def nothing_is_taken_back(self) -> None:
        self.plan(preemption=False)

    def plan(self, *, after_s: int = 60, preemption: bool = True) -> None:
        world = self.world
        world.pass_time(after_s)
        world.drain()
        world.policy = replace(world.policy, preemption=preemption)
        of = told(world)
        made = plan(of, world.policy, self.memory)
        if self.plans_twice:
            assert made == plan(shuffled(of, world.at), world.policy), "by its order, or a memory"
        laws.check(world, made)
        world.tried[Case.UNPREEMPTED] += not preemption and bool(made.holds)
        for_nobody = world.enforced or any(each.hard for each in world.budgets.values())
        assert preemption or for_nobody or not made.preempts, "preempted without preemption"
        world.carry_out(made)

    @precondition(lambda self: self.world.holding)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """Also of what was evicted: it may have finished just before."""
        self.world.end(one(data, self.world.holding))

    @precondition(lambda self: self.leaving())
    @rule(data=st.data(), all_are=st.booleans())
    def an_eviction_is_seen(self, data: st.DataObject, all_are: bool) -> None:
        leaving = self.leaving()
        for id in leaving if all_are else [one(data, leaving)]:
            self.world.seen_gone(id)
        self.plan()

    @precondition(lambda self: self.shrinking())
    @rule(data=st.data())
    def a_shrink_is_seen(self, data: st.DataObject) -> None:
        self.world.pods_seen_gone(one(data, self.shrinking()))
        self.plan()

    def add_node(self, kind: str, cluster: str) -> None:
        number = next(self.names)
        made = hardware(kind, f"n{number}")
        labels = (f"z{number % 2}", "" if number % 5 == 4 else f"r{number // 2 % 2}")
        self.world.nodes[made.name] = cluster, replace(made, topology=labels[: len(self.levels)])

    @invariant()
    def all_is_well(self) -> None:
        self.world.check_everything_is_somewhere()
        self.world.check_nothing_is_held_twice()
        budgets.check_kept(self.world)

    def leaving(self) -> list[WorkloadId]:
        return [id for id, held in self.world.holding.items() if held.releasing]

    def shrinking(self) -> list[WorkloadId]:
        return [
            id
            for id, held in self.world.holding.items()
            if not held.releasing and any(p.leaving for p in held.placements)
        ]


class Changing(Fleet):
    """Quotas and nodes change."""

    @rule(
        member=st.sampled_from(MEMBERS),
        flavor=st.sampled_from(FLAVORS),
        quota=st.one_of(QUOTAS, QUOTAS, QUOTAS, st.none()),
    )
    def a_quota_changes(self, member: str, flavor: str, quota: Quota | None) -> None:
        """None: the row is gone."""
        self.world.quotas.pop((member, flavor), None)
        self.world.enforced.pop((member, flavor), None)
        if quota is not None:
            self.world.quotas[member, flavor] = quota
        self.world.is_as_planned = False

    @rule(data=st.data(), usable=st.sampled_from([True, True, False]), sick=st.booleans())
    def a_node_is_drained_or_back(self, data: st.DataObject, usable: bool, sick: bool) -> None:
        name = one(data, self.world.nodes)
        cluster, was = self.world.nodes[name]
        first = replace(was.devices[0], usable=not sick)
        now = replace(was, usable=usable, devices=(first, *was.devices[1:]))
        self.world.nodes[name] = cluster, now
        self.world.is_as_planned = False

    @rule(data=st.data(), holds=st.booleans())
    def foreign_pods_take_a_device_or_leave(self, data: st.DataObject, holds: bool) -> None:
        """Pods that are not ours take all of one that nobody holds."""
        name = one(data, self.world.nodes)
        cluster, was = self.world.nodes[name]
        on = {id for held in self.world.holding.values() for id, _ in parts_of(held.placements)}
        free = sorted(device.id for device in was.devices if device.id not in on)
        taken = (
            [(data.draw(st.sampled_from(free)), ALL[was.devices[0].mode])]
            if free and holds
            else []
        )
        self.world.nodes[name] = cluster, replace(was, foreign=tuple(taken))
        self.world.is_as_planned = False

    @rule(data=st.data(), kind=st.sampled_from(KINDS), cluster=st.sampled_from(CLUSTERS))
    def a_node_is_replaced(self, data: st.DataObject, kind: str, cluster: str) -> None:
        """What it held counts until its release is seen."""
        del self.world.nodes[one(data, self.world.nodes)]
        self.add_node(kind, cluster)
        self.world.is_as_planned = False


def one[T: str](data: st.DataObject, of: Collection[T]) -> T:
    return data.draw(st.sampled_from(sorted(of)))
