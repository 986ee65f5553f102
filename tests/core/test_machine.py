"""Whatever happens, in whatever order: the plain laws of `reference` hold after every step."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from scheduler.core.snapshot import BudgetView, PendingView, ReservationView
from scheduler.core.units import BudgetId, CohortId, FlavorId, ProjectId, WorkloadId
from tests.core.build import Quota, milli
from tests.core.reference import budgets, windows
from tests.core.reference.machine import FLAVORS, MEMBERS, Fleet, asked, one
from tests.core.reference.world import PROJECTS, Queue

QUEUES = [
    Queue(),
    Queue(min_run_time_s=300),
    Queue(idle_timeout_s=300, idle_warning_s=120),
    Queue(held=True),
    Queue(drains=True),
]


class Stopping(Fleet):
    """People hold work back, and take back what runs."""

    @rule(of=asked())
    def one_waits_for_a_gate(self, of: PendingView) -> None:
        id = WorkloadId(f"w{next(self.names)}")
        self.world.shut.add(id)
        self.world.submit(replace(of, id=id))

    @precondition(lambda self: self.world.shut & self.world.waiting)
    @rule(data=st.data(), opened=st.booleans())
    def a_gate_is_decided(self, data: st.DataObject, opened: bool) -> None:
        """Who is refused is cancelled."""
        id = one(data, self.world.shut & self.world.waiting)
        self.world.shut.remove(id)
        if not opened:
            self.world.waiting.remove(id)
            self.world.ended.add(id)

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

    @rule(project=st.sampled_from(PROJECTS), to=st.sampled_from(QUEUES))
    def a_queue_changes(self, project: str, to: Queue) -> None:
        self.world.queues[project] = to
        self.world.is_as_planned = False
        self.plan()


class Promising(Fleet):
    """Devices are kept for projects, and their time is bounded."""

    @rule(
        project=st.sampled_from(PROJECTS),
        amount=st.integers(1, 3),
        in_s=st.sampled_from([0, 300, 900]),
        for_s=st.sampled_from([600, 3600]),
        binds_s=st.sampled_from([None, 120]),
    )
    def a_window_is_reserved(
        self, project: str, amount: int, in_s: int, for_s: int, binds_s: int | None
    ) -> None:
        """It binds at once, or so long before it opens."""
        starts_at = self.world.at + in_s
        window = ReservationView(
            ProjectId(project),
            FlavorId(windows.FLAVOR),
            milli(amount),
            starts_at,
            starts_at + for_s,
            0 if binds_s is None else starts_at - binds_s,
        )
        self.world.reservations = [*self.world.reservations[-1:], window]
        self.world.is_as_planned = False
        self.plan()

    @rule(
        member=st.sampled_from(MEMBERS),
        hours=st.sampled_from([0, 0.5, 2, 10]),
        in_s=st.sampled_from([600, 3600]),
        safe=st.sampled_from([True, True, False]),
    )
    def a_budget_is_made(self, member: str, hours: float, in_s: int, safe: bool) -> None:
        """In the place of the one that was. It covers what runs already."""
        is_project = member in PROJECTS
        made = BudgetView(
            BudgetId(member),
            member,
            limit_milli_s=0,
            used_milli_s=0,
            ends_at=self.world.at + in_s,
            project=ProjectId(member) if is_project else None,
            cohort=None if is_project else CohortId(member),
            safe=safe,
        )
        limit = budgets.coming_milli_s(self.world, member, made) + milli(3600 * hours)
        self.world.budgets[member] = replace(made, limit_milli_s=ceil(limit))
        self.world.used[member] = Fraction(0)
        self.world.is_as_planned = False
        self.plan()


class Everything(Stopping, Promising):
    pass


class Scattered(Fleet):
    """Devices alone are scarce, and free ones are on many nodes: work is moved, and waits long."""

    kinds = ("whole", "whole", "whole", "cut on demand", "cut on demand")
    quota = Quota(9, None)


@pytest.mark.parametrize("machine", [Fleet, Scattered, Stopping, Promising, Everything])
def test_whatever_happens_the_rules_hold(machine: type[Fleet]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=40, deadline=None)
    )
