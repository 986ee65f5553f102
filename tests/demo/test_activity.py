"""What the demo's people do keeps its pages alive: early, and from then on."""

import pytest

from controlplane.demo import activity
from tests.demo.town import Town

ALIVE_S = 20
"""Two thirds of the half minute that pages may take to look alive; real processes need some."""
EVERYTHING = {
    tenant: {"running", "pending", "finished"} for tenant in ("vision", "language", "climate")
}


def test_three_tenants_run_wait_and_finish_early_and_from_then_on(db: None) -> None:
    town = Town(until_s=120).live()
    dull = {second: mix for second, mix in town.mixes.items() if mix != EVERYTHING}
    assert max(town.mixes) == 120
    assert max(dull) < ALIVE_S, dull


@pytest.mark.parametrize("habit", activity.HABITS, ids=lambda habit: habit.name)
def test_a_habits_run_times_are_taken_in_turn_from_the_first(habit: activity.Habit) -> None:
    found = []
    for each, wanted in activity.submissions():
        if each is habit:
            found.append(wanted.pod_sets[0].command)
        if len(found) > len(habit.seconds):
            break
    asked = [("sleep", str(seconds)) if seconds else ("false",) for seconds in habit.seconds]
    assert found == [*asked, asked[0]]
