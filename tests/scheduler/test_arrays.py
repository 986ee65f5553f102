"""Arrays in the database: stored at once, capped as they are admitted, cancelled as one."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from controlplane.kernel.ids import uuid7
from scheduler.core.policy import Policy
from scheduler.core.snapshot import TopologyView
from scheduler.core.units import PodSetId, WorkloadId
from scheduler.loop import run
from scheduler.loop.pods import claims
from scheduler.loop.pods.requests import pod_request
from scheduler.models import Operation, PodSetFlavor, Workload, WorkloadArray, WorkloadEvent
from scheduler.selectors.load import load_here
from scheduler.services import arrays
from scheduler.services.specs import MAX_ELEMENTS, ArraySpec
from scheduler.services.workloads import QueueFull
from tenants.access import actor_for
from tenants.models import Project, Role
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage


def submit(
    stage: Stage, size: int, most: int | None = None, name: str = "sweep", *, gpus: int = 1
) -> WorkloadArray:
    asked = spec(stage.flavor.name, name=name, gpus=gpus)
    array = ArraySpec(size, most)
    checked = arrays.check(
        actor=stage.actor, project=stage.project, spec=asked, array=array, at=AT
    )
    return arrays.store(checked=checked, array=array, at=AT)


def states(array: WorkloadArray) -> list[str]:
    return list(array.elements.order_by("array_index").values_list("state", flat=True))


def test_its_elements_are_numbered_from_zero_in_the_order_of_their_ids(stage: Stage) -> None:
    array = submit(stage, 3)
    rows = Workload.objects.order_by("id").values_list("name", "array_index", "state")
    assert list(rows) == [(f"sweep[{i}]", i, "PENDING") for i in range(3)]
    assert (array.name, array.size, array.most_at_once) == ("sweep", 3, None)
    assert WorkloadEvent.objects.count() == 3
    assert AuditEvent.objects.filter(action="workload.submit").count() == 3


def test_the_largest_takes_as_many_queries_as_the_smallest(stage: Stage) -> None:
    counts = []
    for size in (2, 2, MAX_ELEMENTS - 4):  # the first reads what a process keeps
        with CaptureQueriesContext(connection) as queries:
            submit(stage, size)
        counts.append(len(queries))
    assert counts[1] == counts[2]
    assert Workload.objects.count() == MAX_ELEMENTS


def test_each_element_asks_for_all_that_the_first_does(stage: Stage) -> None:
    asked = spec(stage.flavor.name, count=2, run_time_limit_s=60, command=("sh", "-c", "a 'b'"))
    pod_set = replace(asked.pod_sets[0], env={"A": "1"}, args=("x", ""))
    other = replace(pod_set, name="other", gpu_count=2)
    asked = replace(
        asked, pod_sets=(pod_set, other), labels={"team": "a"}, clusters=("north",),
        topology=TopologyView("rack", required=False),
    )  # fmt: skip
    array = ArraySpec(3)
    checked = arrays.check(
        actor=stage.actor, project=stage.project, spec=asked, array=array, at=AT
    )
    arrays.store(checked=checked, array=array, at=AT)
    own = {"id", "workload_id", "pod_set_id", "name", "array_index"}
    told = [
        [
            {k: v for k, v in fields.items() if k not in own}
            for rows in (
                Workload.objects.filter(id=row.id),
                row.pod_sets.order_by("position"),
                PodSetFlavor.objects.filter(pod_set__workload=row).order_by("pod_set__position"),
                Workload.clusters.through.objects.filter(workload=row),
                row.events.all(),
            )
            for fields in rows.values()
        ]
        for row in Workload.objects.order_by("array_index")
    ]
    assert len(told[0]) == 1 + 2 + 2 + 1 + 1
    assert told[1] == told[2] == told[0]


def test_all_of_it_counts_in_the_queue_or_none_is_stored(stage: Stage) -> None:
    Project.objects.update(max_pending=5)
    with pytest.raises(QueueFull, match="with 6 more it would pass the limit of 5"):
        submit(stage, 6)
    assert not WorkloadArray.objects.exists()
    assert submit(stage, 5).elements.count() == 5


def test_a_name_leaves_room_for_the_number(stage: Stage) -> None:
    submit(stage, 10, name="n" * 97)
    with pytest.raises(Invalid, match="at most 96 characters") as refused:
        submit(stage, 11, name="n" * 97)
    assert refused.value.problems[0].pointer == "/0/name"


def test_the_planner_knows_of_those_that_have_a_cap(stage: Stage) -> None:
    capped, free = submit(stage, 2, 1), submit(stage, 2, name="free")
    stage.cycle()
    of = load_here(at=AT).snapshot
    [waiting] = of.pending
    assert waiting.array is not None
    assert (waiting.array.id, waiting.array.most_at_once) == (str(capped.id), 1)
    held = {h.array.id if h.array else None for h in of.holding}
    assert held == {str(capped.id), None}
    assert free.elements.filter(state="ADMITTED").count() == 2


def test_no_more_are_admitted_than_may_run_and_the_rest_is_told(stage: Stage) -> None:
    array = submit(stage, 5, 2)
    stage.cycle()
    stage.cycle()
    assert states(array) == ["ADMITTED", "ADMITTED", "PENDING", "PENDING", "PENDING"]
    reason = array.elements.get(array_index=4).reason
    assert reason is not None
    assert reason["text"] == "2 of its array run; at most 2 may at once."


def test_a_plan_made_before_others_of_it_were_admitted_starts_no_more_than_may(
    stage: Stage,
) -> None:
    """Two plans of one moment, each lawful: of the later one only what the cap leaves is admitted,
    though there is room for all of it."""
    array = submit(stage, 6, 3)
    loaded, decided = stage.decide()
    first, second, third = decided.admits
    assert len(stage.carry_out(loaded, replace(decided, admits=(first, second))).admitted) == 2

    elements = [str(row.id) for row in array.elements.order_by("array_index")]
    started = {admit.workload for admit in decided.admits}
    fourth = next(id for id in elements if id not in started)
    pod_set = Workload.objects.get(id=fourth).pod_sets.get()
    stage.submit("aside")
    free = stage.decide()[1].admits
    aside = next(admit for admit in free if admit.workload not in elements)
    other = replace(
        aside,
        workload=WorkloadId(fourth),
        places=tuple(replace(place, pod_set=PodSetId(str(pod_set.id))) for place in aside.places),
    )
    outcome = stage.carry_out(loaded, replace(decided, admits=(third, other)))
    assert outcome.admitted == {third.workload}
    assert outcome.refused == (fourth,)
    assert array.elements.filter(state="ADMITTED").count() == 3


def test_each_pod_is_told_its_index_and_how_many_there_are(stage: Stage) -> None:
    submit(stage, 3)
    stage.submit("plain")
    stage.cycle()
    told = {}
    for claimed in claims.claim(cluster_id=stage.cluster.id, token=uuid7(), limit=10):
        for pod in claimed.pods:
            told[pod.workload_id] = dict(pod_request(pod).env)
    indexes = Workload.objects.values_list("id", "array_index")
    assert told == {
        id: {} if index is None else {"BERTH_ARRAY_INDEX": str(index), "BERTH_ARRAY_SIZE": "3"}
        for id, index in indexes
    }


class TestCancel:
    def test_what_waits_ends_and_what_runs_is_stopped(self, stage: Stage) -> None:
        array = submit(stage, 4, 2)
        stage.cycle()
        other = stage.submit("other")
        arrays.cancel(actor=stage.actor, array=array, at=LATER)
        assert states(array) == ["CANCELLING", "CANCELLING", "CANCELLED", "CANCELLED"]
        assert Operation.objects.filter(kind="stop").count() == 2
        other.refresh_from_db()
        assert other.state == "PENDING"
        told = WorkloadEvent.objects.filter(after="CANCELLED").values_list("message", flat=True)
        assert set(told) == {"cancelled with its array by ada"}

    def test_again_it_stops_what_is_left_and_in_the_end_there_is_nothing(
        self, stage: Stage
    ) -> None:
        array = submit(stage, 2, 1)
        stage.cycle()
        for _ in range(2):
            arrays.cancel(actor=stage.actor, array=array, at=LATER)
        assert states(array) == ["CANCELLING", "CANCELLED"]
        done = submit(stage, 2, name="done")
        arrays.cancel(actor=stage.actor, array=done, at=LATER)
        with pytest.raises(Conflict, match="done has ended already"):
            arrays.cancel(actor=stage.actor, array=done, at=LATER)

    def test_another_member_may_not(self, stage: Stage) -> None:
        array = submit(stage, 2)
        ben = factories.user("ben")
        factories.member(ben, Role.MEMBER, at=stage.project)
        with pytest.raises(NotAllowed, match="may cancel this array"):
            arrays.cancel(actor=actor_for(user=ben), array=array, at=LATER)
        assert states(array) == ["PENDING", "PENDING"]


def test_a_full_array_costs_a_cycle_little(committed: Stage) -> None:
    """Its like are held unseen: a plan asks for one of them a round."""
    submit(committed, 500, 1)
    record = run.run_cycle(at=AT, policy=Policy())
    assert record is not None
    assert (record.admitted_count, record.pending_count) == (1, 500)
    assert Workload.objects.filter(reason__code="array-full").count() == 499
