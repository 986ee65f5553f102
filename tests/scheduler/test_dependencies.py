"""What waits for the end of other work: held, started, or cancelled, and told why."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.loop import run
from scheduler.loop.preparing import dependencies
from scheduler.models import (
    Dependency,
    DependencyKind,
    OnUnmet,
    Workload,
)
from scheduler.selectors.load import load_here
from scheduler.services import dependencies as waits
from scheduler.services import workloads
from scheduler.services.specs import AFTER, ON_UNMET, DependencySpec
from tenants.access import Actor, actor_for
from tenants.models import Project, Role
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.waiting import END, FAILURE, RUN, SUCCESS, after, array_of, end, named, state


def foreign_work(stage: Stage, within: Project, **fields: Any) -> Workload:  # Any: model fields
    return factories.workload(within, by=stage.ada, accepted=[stage.flavor], **fields)


class TestLoaded:
    def test_the_planner_is_told_how_many_and_which_is_first(self, stage: Stage) -> None:
        first, second = stage.submit("first"), stage.submit("second")
        later = after(stage, second, first)
        found = {str(p.id): p.waits_for for p in load_here(at=AT).snapshot.pending}
        unmet = found[str(later.id)]
        assert unmet is not None
        assert (unmet.count, unmet.first) == (2, str(first.id))
        assert found[str(first.id)] is None

    def test_each_element_waits_for_what_its_array_waits_for(self, stage: Stage) -> None:
        first = stage.submit("first")
        array_of(stage, 3, first)
        found = [p.waits_for for p in load_here(at=AT).snapshot.pending]
        assert [unmet.first if unmet else "" for unmet in found] == ["", *[str(first.id)] * 3]


@pytest.mark.parametrize(
    ("kind", "ends", "then"),
    [
        (SUCCESS, State.SUCCEEDED, "PENDING"),
        (SUCCESS, State.FAILED, "CANCELLED"),
        (END, State.SUCCEEDED, "PENDING"),
        (END, State.FAILED, "PENDING"),
        (FAILURE, State.SUCCEEDED, "CANCELLED"),
        (FAILURE, State.FAILED, "PENDING"),
    ],
)
def test_it_starts_after_the_end_it_waits_for_and_is_cancelled_after_another(
    kind: str, ends: State, then: str, stage: Stage
) -> None:
    first = stage.submit("first")
    later = after(stage, first, kind=kind)
    end(first, *RUN)
    assert dependencies.settle(at=LATER) == 0
    end(first, ends)
    assert dependencies.settle(at=LATER) == 1
    assert state(later) == then
    [pending] = load_here(at=AT).snapshot.pending or [None]
    assert (pending is not None) == (then == "PENDING")
    assert pending is None or pending.waits_for is None
    assert dependencies.settle(at=LATER) == 0


def test_who_is_cancelled_is_told_what_for(stage: Stage) -> None:
    first = stage.submit("first")
    later, rescue = after(stage, first), after(stage, first, kind=FAILURE, name="rescue")
    other = stage.submit("other")
    saved = after(stage, other, kind=FAILURE, name="saved")
    stage.cancel(first)
    end(other, *RUN, State.SUCCEEDED)
    dependencies.settle(at=LATER)
    told = {w.name: w.events.latest("id").message for w in Workload.objects.all()}
    assert told["later"] == "cancelled: it was to start after first succeeded, which is CANCELLED"
    assert told["saved"] == "cancelled: it was to start after other failed, which succeeded"
    assert [state(one) for one in (later, rescue, saved)] == ["CANCELLED", "PENDING", "CANCELLED"]


def test_all_it_waits_for_have_to_end(stage: Stage) -> None:
    first, second = stage.submit("first"), stage.submit("second")
    later = after(stage, first, second)
    end(first, *RUN, State.SUCCEEDED)
    dependencies.settle(at=LATER)
    unmet = load_here(at=AT).snapshot.pending[-1].waits_for
    assert unmet is not None
    assert (unmet.count, unmet.first) == (1, str(second.id))
    end(second, *RUN, State.FAILED)
    dependencies.settle(at=LATER)
    assert state(later) == "CANCELLED"


class TestArrays:
    def test_an_array_has_succeeded_when_all_of_it_has(self, stage: Stage) -> None:
        array = array_of(stage, 2)
        later = after(stage, array)
        one, two = array.elements.order_by("array_index")
        end(one, *RUN, State.SUCCEEDED)
        assert dependencies.settle(at=LATER) == 0
        end(two, *RUN, State.SUCCEEDED)
        assert dependencies.settle(at=LATER) == 1
        assert state(later) == "PENDING"

    def test_one_failure_is_enough_to_know_that_it_will_not(self, stage: Stage) -> None:
        array = array_of(stage, 2)
        later, at_end = after(stage, array), after(stage, array, kind=END, name="at-end")
        one, two = array.elements.order_by("array_index")
        end(one, *RUN, State.FAILED)
        assert dependencies.settle(at=LATER) == 1
        assert (state(later), state(at_end)) == ("CANCELLED", "PENDING")
        assert later.events.latest("id").message == (
            "cancelled: it was to start after sweep succeeded, which is FAILED"
        )
        end(two, *RUN, State.SUCCEEDED)
        assert dependencies.settle(at=LATER) == 1

    def test_all_of_an_array_is_cancelled_with_what_it_waits_for(self, stage: Stage) -> None:
        first = stage.submit("first")
        array, last = array_of(stage, 3, first), stage.submit("last")
        end(first, State.CANCELLED)
        dependencies.settle(at=LATER)
        assert set(array.elements.values_list("state", flat=True)) == {"CANCELLED"}
        assert state(last) == "PENDING"


def test_a_chain_falls_link_by_link(stage: Stage) -> None:
    a = stage.submit("a")
    b = after(stage, a, name="b")
    c = after(stage, b, name="c")
    end(a, State.CANCELLED)
    assert [dependencies.settle(at=LATER) for _ in range(3)] == [1, 1, 0]
    assert (state(b), state(c)) == ("CANCELLED", "CANCELLED")


def test_a_cycle_settles_before_it_plans(committed: Stage) -> None:
    first = committed.submit("first")
    later = after(committed, first)
    run.run_cycle(at=AT)
    assert state(later) == "PENDING"
    assert later.reason is not None
    assert later.reason["code"] == "dependency"
    assert later.reason["text"] == (
        f"It starts after other work. Still to end: 1; first {first.id}."
    )
    end(first, State.RUNNING, State.SUCCEEDED)
    run.run_cycle(at=AT)
    assert state(later) == "ADMITTED"


def test_many_that_wait_cost_two_queries(stage: Stage) -> None:
    first = stage.submit("first")
    for nth in range(20):
        after(stage, first, name=f"w{nth}")
    with CaptureQueriesContext(connection) as queries:
        assert dependencies.settle(at=LATER) == 0
    assert len(queries) == 2


class TestRefused:
    def problem(
        self, stage: Stage, *asked: DependencySpec, actor: Actor | None = None
    ) -> tuple[str, str, str]:
        wanted = replace(spec(stage.flavor.name), depends_on=asked)
        before = Workload.objects.count()
        with pytest.raises(Invalid) as refused:
            workloads.check(
                actor=actor or stage.actor, project=stage.project, specs=[wanted], at=AT
            )
        assert Workload.objects.count() == before
        [found] = refused.value.problems
        return found.pointer, found.code, found.message

    def test_what_there_is_not(self, stage: Stage) -> None:
        id = uuid7()
        first = stage.submit("first")
        known = DependencySpec(SUCCESS, first.id)
        assert self.problem(stage, known, DependencySpec(SUCCESS, id)) == (
            "/0/depends_on/1/workload",
            "unknown-workload",
            f"There is no workload {id} that you see.",
        )
        assert self.problem(stage, DependencySpec(END, first.id, is_array=True)) == (
            "/0/depends_on/0/array",
            "unknown-array",
            f"There is no array {first.id} that you see.",
        )

    def test_what_the_submitter_does_not_see(self, stage: Stage) -> None:
        foreign = foreign_work(stage, factories.project(factories.tenant("other")))
        _, code, message = self.problem(stage, DependencySpec(SUCCESS, foreign.id))
        assert (code, message) == (
            "unknown-workload",
            f"There is no workload {foreign.id} that you see.",
        )

    def test_what_never_comes_true(self, stage: Stage) -> None:
        first = stage.submit("first")
        stage.cancel(first)
        assert self.problem(stage, DependencySpec(SUCCESS, first.id)) == (
            "/0/depends_on/0/kind",
            "never-met",
            f"The workload {first.id} is CANCELLED already, so after-success never comes true;"
            " after-end would.",
        )
        assert after(stage, first, kind=FAILURE).dependencies.count() == 1

    def test_what_another_clock_says_comes_later(self, stage: Stage) -> None:
        ahead = foreign_work(stage, stage.project, id=UUID(int=uuid7().int + (1 << 100)))
        with pytest.raises(Conflict, match="a clock that is ahead of this one; try again"):
            after(stage, ahead)
        assert not Dependency.objects.exists()

    def test_itself_round_a_corner(self, stage: Stage) -> None:
        a = stage.submit("a")
        b = after(stage, a, name="b")
        with pytest.raises(IntegrityError), transaction.atomic():
            Dependency.objects.create(workload=a, on_workload=b, kind=END)


def test_a_member_may_wait_for_work_of_others_in_another_project_of_theirs(stage: Stage) -> None:
    other = factories.project(factories.tenant("other"))
    theirs = foreign_work(stage, other, name="secret")
    factories.member(stage.ada, Role.VIEWER, at=other)
    actor = actor_for(user=stage.ada)
    asked = replace(spec(stage.flavor.name), depends_on=named(theirs))
    [made] = workloads.submit(actor=actor, project=stage.project, specs=[asked], at=AT)
    end(theirs, State.CANCELLED)
    dependencies.settle(at=LATER)
    message = made.events.latest("id").message
    assert str(theirs.id) in message
    assert "secret" not in message


def test_the_kinds_are_those_of_the_rows() -> None:
    assert set(AFTER) == set(DependencyKind.values)
    assert list(ON_UNMET) == OnUnmet.values
    ends = {k: waits.came_true(kind=k, states={"SUCCEEDED", "RUNNING"}) for k in AFTER}
    assert ends == dict.fromkeys(AFTER)
