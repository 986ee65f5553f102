"""Arrays and what waits for what, from the submission to the end, on a simulated cluster."""

from dataclasses import replace
from itertools import pairwise

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import HOLDING, State
from scheduler.models import Workload, WorkloadArray
from scheduler.services import arrays, workloads
from scheduler.services.specs import ArraySpec, DependencySpec, WorkloadSpec
from tests.flows.world import World, spec

FAILS = ("sh", "-c", "sleep 1; exit 3")


def submit_array(world: World, asked: WorkloadSpec, array: ArraySpec) -> WorkloadArray:
    checked = arrays.check(
        actor=world.ada, project=world.vision, spec=asked, array=array, at=now()
    )
    return arrays.store(checked=checked, array=array, at=now())


def after(world: World, asked: WorkloadSpec, needed: Workload | WorkloadArray) -> Workload:
    on = DependencySpec("after-success", needed.id, isinstance(needed, WorkloadArray))
    [made] = world.submit(replace(asked, depends_on=(on,)))
    return made


def test_an_array_of_twenty_runs_to_its_end_three_at_a_time(world: World) -> None:
    array = submit_array(world, spec(name="sweep", command=("sleep", "0")), ArraySpec(20, 3))
    at_most = []

    def ended() -> bool:
        states = list(array.elements.values_list("state", flat=True))
        at_most.append(sum(state in HOLDING for state in states))
        return set(states) == {"SUCCEEDED"}

    world.until(ended)
    assert max(at_most) <= 3
    # By their rows, since a turn may begin and end three of them.
    spans = [(row.admitted_at, row.ended_at) for row in array.elements.all()]
    held = [
        sum(begin <= at < end for begin, end in spans if begin and end)
        for at, _ in spans
        if at is not None
    ]
    assert len(held) == 20
    assert max(held) == 3


def test_a_chain_runs_in_its_order(world: World) -> None:
    [first] = world.submit(spec(name="first", command=("sleep", "0")))
    second = after(world, spec(name="second", command=("sleep", "0")), first)
    third = after(world, spec(name="third", command=("sleep", "0")), second)
    world.until_state(third, State.SUCCEEDED)
    rows = [Workload.objects.get(id=one.id) for one in (first, second, third)]
    for before, behind in pairwise(rows):
        assert before.ended_at
        assert behind.admitted_at
        assert before.ended_at <= behind.admitted_at


def test_what_waits_for_the_success_of_what_fails_is_cancelled_to_the_end_of_the_chain(
    world: World,
) -> None:
    [first] = world.submit(spec(name="first", command=FAILS))
    second = after(world, spec(name="second"), first)
    third = after(world, spec(name="third"), second)
    world.until_state(third, State.CANCELLED)
    told = [one.events.latest("id").message for one in (first, second, third)]
    assert told[1:] == [
        "cancelled: it was to start after first succeeded, which is FAILED",
        "cancelled: it was to start after second succeeded, which is CANCELLED",
    ]
    assert first.attempts.count() == 1
    assert second.attempts.count() == third.attempts.count() == 0


def test_what_waits_for_an_array_starts_when_all_of_it_has_ended(world: World) -> None:
    array = submit_array(world, spec(name="sweep", command=("sleep", "0")), ArraySpec(4, 2))
    report = after(world, spec(name="report", command=("sleep", "0")), array)
    world.until_state(report, State.SUCCEEDED)
    last = max(row.ended_at for row in array.elements.all() if row.ended_at)
    assert report.admitted_at
    assert last <= report.admitted_at


def test_an_array_that_is_cancelled_ends_whole(world: World) -> None:
    array = submit_array(world, spec(name="sweep", command=("sleep", "60")), ArraySpec(6, 2))
    world.until(lambda: array.elements.filter(state=State.RUNNING).count() == 2)
    arrays.cancel(actor=world.ada, array=array, at=now())
    world.until(lambda: array.elements.filter(state=State.CANCELLED).count() == 6)


def test_a_waiting_workload_of_a_cancelled_one_is_told_before_it_ever_starts(
    world: World,
) -> None:
    [first] = world.submit(spec(name="first", command=("sleep", "60")))
    second = after(world, spec(name="second"), first)
    world.until_state(first, State.RUNNING)
    workloads.cancel(actor=world.ada, workload=first, at=now())
    world.until_state(second, State.CANCELLED)
