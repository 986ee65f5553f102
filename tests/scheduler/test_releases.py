"""Elements that wait by index, and who is held in vain until it is released (ADR 0040)."""

from dataclasses import replace

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid
from scheduler.core.lifecycle import State
from scheduler.core.waits import UnmetView
from scheduler.loop import run
from scheduler.loop.preparing import dependencies
from scheduler.models import (
    Workload,
    WorkloadArray,
    WorkloadEvent,
)
from scheduler.selectors.load import load_here
from scheduler.services import arrays, releases, workloads
from scheduler.services.specs import ArraySpec, DependencySpec
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.waiting import RUN, SUCCESS, array_of, end, named, state


class TestByIndex:
    def sweep(self, stage: Stage, size: int, *, on: WorkloadArray, **how: str) -> WorkloadArray:
        needs = (DependencySpec(SUCCESS, on.id, True, True, **how),)
        asked, array = replace(spec(stage.flavor.name, name="next"), depends_on=needs), size
        return arrays.submit(
            actor=stage.actor, project=stage.project, spec=asked, array=ArraySpec(array), at=AT
        )

    def test_each_element_starts_or_is_cancelled_with_the_one_of_its_index(
        self, stage: Stage
    ) -> None:
        array = array_of(stage, 3)
        later = self.sweep(stage, 3, on=array)
        one, two, three = array.elements.order_by("array_index")
        end(one, *RUN, State.FAILED)
        end(two, *RUN, State.SUCCEEDED)
        assert dependencies.settle(at=LATER) == 2
        states = later.elements.order_by("array_index").values_list("state", flat=True)
        assert list(states) == ["CANCELLED", "PENDING", "PENDING"]
        waits = {str(p.id): p.waits_for for p in load_here(at=AT).snapshot.pending}
        first, second, third = later.elements.order_by("array_index")
        assert waits[str(second.id)] is None
        assert waits[str(third.id)] == UnmetView(1, str(three.id))
        assert first.events.latest("id").message == (
            "cancelled: it was to start after sweep[0] succeeded, which is FAILED"
        )

    def test_it_may_wait_with_its_array_too(self, stage: Stage) -> None:
        array, first = array_of(stage, 2), stage.submit("first")
        needs = (DependencySpec(SUCCESS, array.id, True, True), *named(first))
        asked = replace(spec(stage.flavor.name, name="next"), depends_on=needs)
        arrays.submit(
            actor=stage.actor, project=stage.project, spec=asked, array=ArraySpec(2), at=AT
        )
        last = load_here(at=AT).snapshot.pending[-1].waits_for
        assert last is not None
        assert last.count == 2

    @pytest.mark.parametrize(
        ("size", "told"),
        [
            (None, ("/0/depends_on/0/by_index", "invalid", "this is one workload")),
            (3, ("/0/depends_on/0/array", "unmatched", "has 2 elements and this one 3")),
        ],
    )
    def test_it_is_refused_where_an_index_has_no_match(
        self, stage: Stage, size: int | None, told: tuple[str, str, str]
    ) -> None:
        array = array_of(stage, 2)
        needs = (DependencySpec(SUCCESS, array.id, True, True),)
        asked = replace(spec(stage.flavor.name), depends_on=needs)
        before = Workload.objects.count()
        with pytest.raises(Invalid) as refused:
            workloads.check(
                actor=stage.actor, project=stage.project, specs=[asked],
                array=ArraySpec(size) if size else None, at=AT,
            )  # fmt: skip
        [found] = refused.value.problems
        assert (found.pointer, found.code) == told[:2]
        assert told[2] in found.message
        assert Workload.objects.count() == before


class TestHeld:
    def held(self, stage: Stage, *, size: int = 0) -> Workload | WorkloadArray:
        """It waits, to be held, for work that was cancelled."""
        first = stage.submit("first")
        needs = (replace(named(first)[0], on_unmet="hold"),)
        asked = replace(spec(stage.flavor.name, name="later"), depends_on=needs)
        actor, project = stage.actor, stage.project
        made: Workload | WorkloadArray
        if size:
            made = arrays.submit(
                actor=actor, project=project, spec=asked, array=ArraySpec(size), at=AT
            )
        else:
            [made] = workloads.submit(actor=actor, project=project, specs=[asked], at=AT)
        end(first, State.CANCELLED)
        assert dependencies.settle(at=LATER) == 1
        assert dependencies.settle(at=LATER) == 0
        return made

    def test_it_waits_with_its_reason_until_it_is_released(self, committed: Stage) -> None:
        later = self.held(committed)
        assert isinstance(later, Workload)
        run.run_cycle(at=AT)
        assert state(later) == "PENDING"
        assert later.reason is not None
        assert later.reason["text"].startswith(
            "It was to start after other work, which has ended otherwise: 1 of 1 it waits for"
        )
        releases.release(actor=committed.actor, work=later, at=LATER)
        event = later.events.latest("id")
        assert (event.kind, event.message) == ("released", "released by ada")
        assert AuditEvent.objects.get(action="workload.release").target_id == later.id
        run.run_cycle(at=AT)
        assert state(later) == "ADMITTED"
        with pytest.raises(Conflict, match="later waits for nothing in vain"):
            releases.release(actor=committed.actor, work=later, at=LATER)

    def test_an_array_is_released_as_one(self, stage: Stage) -> None:
        array = self.held(stage, size=3)
        assert isinstance(array, WorkloadArray)
        one = array.elements.order_by("array_index")[0]
        with pytest.raises(Conflict, match="waits as all of its array does: release the array"):
            releases.release(actor=stage.actor, work=one, at=LATER)
        stage.cancel(one)
        releases.release(actor=stage.actor, work=array, at=LATER)
        assert [p.waits_for for p in load_here(at=AT).snapshot.pending] == [None, None]
        assert WorkloadEvent.objects.filter(kind="released").count() == 2

    def test_who_was_cancelled_meanwhile_has_nothing_to_be_released_from(
        self, stage: Stage
    ) -> None:
        later = self.held(stage)
        assert isinstance(later, Workload)
        stage.cancel(later)
        with pytest.raises(Conflict, match="waits for nothing in vain"):
            releases.release(actor=stage.actor, work=later, at=LATER)

    def test_the_planner_is_told_of_what_is_in_vain_first(self, stage: Stage) -> None:
        other, first = stage.submit("other"), stage.submit("first")
        needs = [replace(one, on_unmet="hold") for one in named(other, first)]
        asked = replace(spec(stage.flavor.name), depends_on=tuple(needs))
        workloads.submit(actor=stage.actor, project=stage.project, specs=[asked], at=AT)
        end(first, State.CANCELLED)
        dependencies.settle(at=LATER)
        told = load_here(at=AT).snapshot.pending[-1].waits_for
        assert told == UnmetView(2, str(first.id), 1)
