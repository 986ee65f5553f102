"""A budget in hard mode on a simulated cluster: what runs is stopped, waits, and starts again."""

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Budget, BudgetMode, Period
from tests.flows.world import World, spec


def test_what_runs_is_stopped_and_starts_again_once_there_are_more_hours(world: World) -> None:
    budget = Budget.objects.create(
        project=world.vision, period=Period.QUARTER, limit_h=1, mode=BudgetMode.HARD
    )
    held, cores = (
        world.submit(spec(flavor, gpus=gpus, name=flavor, command=("sleep", "600")))[0]
        for flavor, gpus in (("h100", 1), ("cpu", 0))
    )
    for each in (held, cores):
        world.until_state(each, State.RUNNING)
    Budget.objects.filter(id=budget.id).update(limit_h=0)
    world.until_state(held, State.PENDING)
    for _ in range(3):
        world.turn()
    held.refresh_from_db()
    assert (held.state, held.reason and held.reason["code"]) == (State.PENDING, "budget-used")
    assert Workload.objects.get(id=cores.id).state == State.RUNNING
    assert held.events.filter(kind="preempted").count() == 1
    assert held.attempts.get().outcome == "preempted"
    budget.refresh_from_db()
    assert budget.used_up_at is not None
    Budget.objects.filter(id=budget.id).update(limit_h=1, used_up_at=None)
    world.until_state(held, State.RUNNING)
    assert held.attempts.count() == 2
