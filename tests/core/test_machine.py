"""Whatever happens, in whatever order: the plain laws of `reference` hold after every step."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from scheduler.core.policy import Policy
from scheduler.core.snapshot import BudgetView, Isolation, PendingView, ReservationView
from scheduler.core.units import BudgetId, CohortId, FlavorId, ProjectId
from tests.core.build import Quota, milli
from tests.core.reference import budgets, moves, openings, windows
from tests.core.reference.gatherings import LEVELS, gathered, gathering
from tests.core.reference.machine import FLAVORS, MEMBERS, QUOTAS, Changing, Fleet, asked, one
from tests.core.reference.queued import ASKS, GUARDED, queued
from tests.core.reference.tried import Case
from tests.core.reference.world import PROJECTS, QUEUES, Queue

SAID = [
    Queue(),
    Queue(weight=0),
    Queue(weight=3, min_run_time_s=300),
    Queue(idle_timeout_s=300, idle_warning_s=120),
]


@st.composite
def sharing(draw: st.DrawFn) -> PendingView:
    """Of shares, in thousandths or by memory, or a slice that has as much; in any order or not."""
    asks = draw(asked(flavors=["t4share"]))
    named = draw(st.lists(st.sampled_from(["t4share", "t4slot", "1g"]), min_size=1, unique=True))
    by_memory = draw(st.sampled_from([None, 1000, 5120, 7001, 15_360, 15_361]))
    if by_memory is None:
        named = [each for each in named if each != "1g"] or ["t4share"]
    (pod_set,) = asks.pod_sets
    pod_set = replace(
        pod_set,
        flavors=tuple(FlavorId(each) for each in named),
        gpu_memory_mib=by_memory,
        gpu_milli=pod_set.gpu_milli if by_memory is None else 1000,
        least_isolation=draw(st.sampled_from([Isolation.NONE, Isolation.NONE, *Isolation])),
        any_order=draw(st.booleans()),
    )
    return replace(asks, pod_sets=(pod_set,))


@st.composite
def preferring(draw: st.DrawFn) -> PendingView:
    """Whole devices of one model, or of several, in some order or in any."""
    asks = draw(asked(flavors=["h100"]))
    named = draw(st.permutations(["h100", "a30", "t4"]))[: draw(st.sampled_from([1, 2, 3]))]
    (pod_set,) = asks.pod_sets
    any_order = draw(st.sampled_from([False, False, False, True]))
    flavors = tuple(FlavorId(each) for each in named)
    pod_set = replace(pod_set, flavors=flavors, any_order=any_order)
    return replace(asks, pod_sets=(pod_set,))


class Stopping(Changing):
    """People hold work back, and take back what runs."""

    opens = [openings.stopping]

    @rule(of=asked())
    def one_waits_for_a_gate(self, of: PendingView) -> None:
        """It may be of a project that has a standing gate."""
        self.world.shut.add(self.ask(of))

    @precondition(lambda self: self.world.shut & self.world.waiting)
    @rule(data=st.data(), opened=st.booleans())
    def a_gate_is_decided(self, data: st.DataObject, opened: bool) -> None:
        """Who is refused is cancelled."""
        id = one(data, self.world.shut & self.world.waiting)
        self.world.shut.remove(id)
        if not opened:
            self.world.cancel(id)

    @precondition(lambda self: self.world.holding)
    @rule(data=st.data(), what=st.sampled_from(["saved", "idle", "idle", "used"]))
    def work_is_observed(self, data: st.DataObject, what: str) -> None:
        id = one(data, self.world.holding)
        held, at = self.world.holding[id], self.world.at
        if what == "saved":
            self.world.saved[id] = at
            held = replace(held, checkpointed_at=at)
        else:
            since = (held.idle_since or at) if what == "idle" else None
            told = held.idle_warned_at if what == "idle" else None
            held = replace(held, idle_since=since, idle_warned_at=told)
        self.world.holding[id] = held

    @rule(
        member=st.sampled_from(MEMBERS),
        flavor=st.sampled_from(["h100", "h100", *FLAVORS]),
        nominal=st.sampled_from([0, 1, 2]),
        in_s=st.sampled_from([0, 60, 300]),
    )
    def a_quota_is_enforced(self, member: str, flavor: str, nominal: int, in_s: int) -> None:
        self.world.quotas[member, flavor] = Quota(nominal, 0)
        self.world.enforced[member, flavor] = self.world.at + in_s
        self.world.is_as_planned = False
        self.plan()

    @rule(project=st.sampled_from(PROJECTS), to=st.sampled_from(SAID))
    def a_project_says_otherwise(self, project: str, to: Queue) -> None:
        self.world.queues[project] = to
        self.world.is_as_planned = False
        self.plan()

    @rule(queue=st.sampled_from(QUEUES), drains=st.booleans())
    def a_queue_is_held(self, queue: str, drains: bool) -> None:
        """Of a project, a tenant, a cluster or a pool."""
        self.world.held.add(queue)
        if drains:
            self.world.draining.add(queue)
        self.world.is_as_planned = False
        self.plan()

    @precondition(lambda self: self.world.held)
    @rule(data=st.data())
    def a_queue_is_opened(self, data: st.DataObject) -> None:
        queue = one(data, self.world.held)
        self.world.held.remove(queue)
        self.world.draining.discard(queue)
        self.world.is_as_planned = False
        self.plan()


class Promising(Changing):
    """Devices are kept for projects and tenants, and their time is bounded."""

    opens = [openings.promising]

    @rule(
        member=st.sampled_from(MEMBERS),
        amount=st.integers(1, 3),
        in_s=st.sampled_from([0, 300, 900]),
        for_s=st.sampled_from([600, 3600]),
        binds_s=st.sampled_from([None, 120]),
    )
    def a_window_is_reserved(
        self, member: str, amount: int, in_s: int, for_s: int, binds_s: int | None
    ) -> None:
        """It binds at once, or so long before it opens."""
        starts_at = self.world.at + in_s
        is_project = member in PROJECTS
        window = ReservationView(
            ProjectId(member) if is_project else None,
            FlavorId(windows.FLAVOR),
            milli(amount),
            starts_at,
            starts_at + for_s,
            0 if binds_s is None else starts_at - binds_s,
            None if is_project else CohortId(member),
        )
        self.world.reservations = [*self.world.reservations[-1:], window]
        self.world.is_as_planned = False
        self.plan()

    @rule(
        member=st.sampled_from(MEMBERS),
        hours=st.sampled_from([0, 0.5, 2, 10]),
        in_s=st.sampled_from([600, 3600]),
        mode=st.sampled_from(["safe", "safe", "soft", "hard"]),
    )
    def a_budget_is_made(self, member: str, hours: float, in_s: int, mode: str) -> None:
        """In the place of the one that was. It covers what runs already, unless that is
        stopped for it."""
        is_project = member in PROJECTS
        made = BudgetView(
            BudgetId(member),
            member,
            limit_milli_s=0,
            used_milli_s=0,
            ends_at=self.world.at + in_s,
            project=ProjectId(member) if is_project else None,
            cohort=None if is_project else CohortId(member),
            safe=mode == "safe",
            hard=mode == "hard",
        )
        coming = budgets.coming_milli_s(self.world, member, made)
        limit = milli(3600 * hours) + (0 if made.hard else coming)
        self.world.budgets[member] = replace(made, limit_milli_s=ceil(limit))
        self.world.used[member] = Fraction(0)
        self.world.is_as_planned = False
        self.plan()


class Everything(Stopping, Promising):
    plans_twice = True
    opens = [openings.stopping, openings.promising, openings.taking_back]


class Waiting(Fleet):
    """All queue in one line, and most has a limit: what goes ahead delays nobody."""

    kinds = ("whole", "whole")
    asks = asked(
        flavors=["h100", "h100", "h100", "cpu"],
        projects=["a"],
        priorities=[0],
        limits_s=[300, 600, 900, 1200, 3600, None],
    )
    policies = st.builds(Policy, guard_s=st.just(120), most_kept=st.sampled_from([1, 1, 2]))
    quota = Quota(30)
    opens = [openings.waiting]


class Queued(Fleet):
    """Projects whose quotas are no more than there is, and lent to each other or not: small work
    does not keep large work of its project waiting."""

    kinds = ("whole",) * 4
    asks = ASKS
    policies = GUARDED
    opens = [queued]

    @rule(project=st.sampled_from(["a", "b"]), quota=QUOTAS, more=st.integers(0, 6))
    def a_quota_changes(self, project: str, quota: Quota, more: int) -> None:
        self.world.quotas[project, "h100"] = replace(quota, nominal=quota.nominal + more)
        self.world.is_as_planned = False


class Sharing(Changing):
    """Devices are shared, by memory too, and projects and work accept only so near neighbours."""

    kinds = ("shared", "in replicas", "in turns", "cut on demand")
    asks = sharing()
    quota = Quota(4, None)
    opens = [openings.sharing]

    @rule(project=st.sampled_from(PROJECTS), least=st.sampled_from(Isolation))
    def a_project_accepts(self, project: str, least: Isolation) -> None:
        self.world.queues[project] = replace(self.world.queues[project], least_isolation=least)
        self.world.is_as_planned = False
        self.plan()


class Scattered(Changing):
    """Devices alone are scarce, and free ones are on many nodes: work is moved, and waits long."""

    kinds = ("whole", "whole", "whole", "cut on demand", "cut on demand")
    quota = Quota(9, None)
    opens = [openings.scattered]


class Sparse(Fleet):
    """Small work on many nodes, much of which ends: what is left is moved together."""

    kinds = ("whole", "whole", "whole", "whole", "cut on demand", "cut on demand")
    asks = asked(flavors=["h100", "h100", "1g", "3g"], priorities=[0], limits_s=[None])
    quota = Quota(30)
    steps = 10
    opens = [openings.sparse]

    @rule(data=st.data(), every=st.integers(2, 3), budget_milli_s=st.sampled_from([10**6, 10**9]))
    def a_defragmentation_is_carried_out(
        self, data: st.DataObject, every: int, budget_milli_s: int
    ) -> None:
        """Where work has come, and most of it has ended."""
        self.submit(data)
        self.submit(data)
        for nth, id in enumerate(sorted(self.world.holding)):
            if nth % every:
                self.world.end(id)
        self.world.pass_time(300)
        openings.carry_out_a_defragmentation(self, budget_milli_s=budget_milli_s)


class Climbing(Changing):
    """Work prefers some flavors, and asks to be moved to them."""

    kinds = ("whole", "whole a30", "whole t4", "whole t4")
    flavors = (*FLAVORS, "a30", "t4")
    asks = preferring()
    quota = Quota(6, None)
    opens = [openings.climbing]

    @precondition(lambda self: self.world.holding)
    @rule(data=st.data())
    def it_asks_to_be_moved(self, data: st.DataObject) -> None:
        id = one(data, self.world.holding)
        self.world.asking.add(id)
        self.world.holding[id] = replace(self.world.holding[id], move_to_better=True)

    @rule()
    def a_day_passes(self) -> None:
        self.plan(after_s=moves.RESTS_S)


class Taking(Changing):
    """Work is taken back for other work."""

    opens = [openings.taking_back]


class Gathered(Changing):
    """Work of several pod sets has to be in one zone or rack, all of it or in groups."""

    kinds = ("whole",) * 7
    asks = gathering()
    levels = LEVELS
    quota = Quota(6, None)
    opens = [gathered]


MACHINES = [
    *(Changing, Taking, Scattered, Sparse, Climbing, Stopping, Promising, Waiting, Queued),
    *(Sharing, Gathered, Everything),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_whatever_happens_the_rules_hold(machine: type[Fleet]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=8, stateful_step_count=machine.steps, deadline=None),
    )


def test_each_case_is_reached_in_each_run_of_a_machine() -> None:
    opens = [machine.opens[0] for machine in MACHINES if len(machine.opens) == 1]
    assert {case for opening in opens for case in opening.reaches} == {*Case}
