"""Whatever happens, in whatever order: `world`'s plain rules hold after every step."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import FlavorKind, Isolation, NodeView, PendingView, PodSetView
from scheduler.core.units import WorkloadId
from tests.core.build import BY_NAME, T4, Quota, cpu_pods, job, node, pods
from tests.core.world import CLUSTERS, COHORTS, PROJECTS, Queue, World

FLAVORS = ("h100", "1g", "3g", "t4share", "cpu")
MEMBERS = (*PROJECTS, *COHORTS)
KINDS = ("whole", "cut on demand", "shared", "in replicas")
QUOTAS = st.builds(
    Quota,
    st.integers(0, 2),
    st.sampled_from([None, None, None, 0, 2]),
    st.sampled_from([None, None, None, 0, 1]),
)
QUEUES = [Queue(), Queue(), Queue(min_run_time_s=300), Queue(held=True)]


def hardware(kind: str, name: str) -> NodeView:
    if kind == "whole":
        return node(name, gpus=3, cores=8, memory_gib=8)
    if kind == "cut on demand":
        return node(name, gpus=1, dynamic=True, cores=8, memory_gib=8)
    return node(
        name,
        gpus=2,
        model=T4,
        shares=Isolation.MEMORY,
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
def _asked(draw: st.DrawFn) -> PendingView:
    """Without a name yet. What is scarce is asked for most."""
    pod_set = a_pod_set(
        draw(st.sampled_from([*("h100",) * 4, *FLAVORS])),
        most=draw(st.integers(1, 3)),
        least=draw(st.sampled_from([1, 1, 2, 3])),
        size=draw(st.sampled_from([1, 1, 2, 3])),
    )
    made = job("", draw(st.sampled_from(PROJECTS)), pod_set, priority=draw(st.integers(0, 2)))
    return replace(made, preemptible=draw(st.sampled_from([True, True, True, False])))


class Fleet(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.names: Iterator[int] = count()

    @initialize(quotas=st.lists(QUOTAS, min_size=len(MEMBERS), max_size=len(MEMBERS)))
    def begin(self, quotas: list[Quota]) -> None:
        for member, quota in zip(MEMBERS, quotas, strict=True):
            self.world.quotas |= {(member, flavor): quota for flavor in FLAVORS}
        for kind in KINDS:
            self.add_node(kind, CLUSTERS[0])

    @rule(of=st.lists(_asked(), min_size=2, max_size=8))
    def submit(self, of: list[PendingView]) -> None:
        """A plan follows, as it does on a hint."""
        for asked in of:
            self.world.submit(replace(asked, id=WorkloadId(f"w{next(self.names)}")))
        self.plan(preemption=True, after_s=60)

    @rule(
        after_s=st.sampled_from([60, 600]), preemption=st.sampled_from([True, True, True, False])
    )
    def plan(self, after_s: int, preemption: bool) -> None:
        self.world.at += after_s
        of = self.world.snapshot()
        made = plan(of, Policy(preemption=preemption))
        self.world.check(made)
        assert preemption or not made.preempts
        self.world.carry_out(made)

    @precondition(lambda self: self.world.holding)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """Also of what was evicted: it may have finished just before."""
        self.world.end(_one(data, self.world.holding))

    @precondition(lambda self: self.leaving())
    @rule(data=st.data())
    def an_eviction_is_seen(self, data: st.DataObject) -> None:
        self.world.seen_gone(_one(data, self.leaving()))
        self.plan(preemption=True, after_s=60)

    @precondition(lambda self: self.shrinking())
    @rule(data=st.data())
    def a_shrink_is_seen(self, data: st.DataObject) -> None:
        self.world.pods_seen_gone(_one(data, self.shrinking()))
        self.plan(preemption=True, after_s=60)

    @rule(
        member=st.sampled_from(MEMBERS),
        flavor=st.sampled_from(FLAVORS),
        quota=st.one_of(QUOTAS, QUOTAS, QUOTAS, st.none()),
    )
    def a_quota_changes(self, member: str, flavor: str, quota: Quota | None) -> None:
        """None: the row is gone."""
        self.world.quotas.pop((member, flavor), None)
        if quota is not None:
            self.world.quotas[member, flavor] = quota

    @rule(
        project=st.sampled_from(PROJECTS),
        to=st.sampled_from(QUEUES),
    )
    def a_queue_changes(self, project: str, to: Queue) -> None:
        self.world.queues[project] = to

    @rule(data=st.data(), usable=st.sampled_from([True, True, False]), sick=st.booleans())
    def a_node_is_drained_or_back(self, data: st.DataObject, usable: bool, sick: bool) -> None:
        name = _one(data, self.world.nodes)
        cluster, was = self.world.nodes[name]
        first = replace(was.devices[0], usable=not sick)
        now = replace(was, usable=usable, devices=(first, *was.devices[1:]))
        self.world.nodes[name] = cluster, now

    @rule(data=st.data(), kind=st.sampled_from(KINDS), cluster=st.sampled_from(CLUSTERS))
    def a_node_is_replaced(self, data: st.DataObject, kind: str, cluster: str) -> None:
        """What it held counts until its release is seen."""
        del self.world.nodes[_one(data, self.world.nodes)]
        self.add_node(kind, cluster)

    def add_node(self, kind: str, cluster: str) -> None:
        name = f"n{next(self.names)}"
        self.world.nodes[name] = cluster, hardware(kind, name)

    @invariant()
    def all_is_well(self) -> None:
        self.world.check_everything_is_somewhere()
        self.world.check_nothing_is_held_twice()

    def leaving(self) -> list[WorkloadId]:
        return [id for id, held in self.world.holding.items() if held.releasing]

    def shrinking(self) -> list[WorkloadId]:
        return [
            id
            for id, held in self.world.holding.items()
            if not held.releasing and any(p.leaving for p in held.placements)
        ]


def _one[T: str](data: st.DataObject, of: Collection[T]) -> T:
    return data.draw(st.sampled_from(sorted(of)))


def test_whatever_happens_the_rules_hold() -> None:
    run_state_machine_as_test(
        Fleet, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
