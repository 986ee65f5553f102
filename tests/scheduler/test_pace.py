"""Between two cycles: how long, and after which of them."""

import pytest
from celery import current_app

from controlplane.kernel import hints
from scheduler import tasks
from scheduler.core.policy import Policy
from scheduler.loop import run
from scheduler.loop.pace import LONGEST_S, PAUSE, Pace
from scheduler.models import Workload
from tests.factories import AT
from tests.scheduler.stage import Stage


class Clock:
    """Goes on when somebody sleeps, or is told to pass."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Pace:
    """The one of this process's cycles, by the clock."""
    made = Pace(clock=clock, sleep=clock.sleep)
    monkeypatch.setattr(run, "pace", made)
    return made


def test_the_first_cycle_waits_for_nothing(clock: Clock, pace: Pace) -> None:
    pace.wait()
    assert clock.slept_s == []


def test_a_pause_is_as_long_as_its_cycle_was_and_half_as_long_again(
    clock: Clock, pace: Pace
) -> None:
    pace.ended(took_s=0.04)
    pace.wait()
    pace.wait()
    assert clock.slept_s == [pytest.approx(0.04 * PAUSE)]


def test_what_has_passed_of_a_pause_is_not_waited_for(clock: Clock, pace: Pace) -> None:
    pace.ended(took_s=0.04)
    clock.now_s += 0.05
    pace.wait()
    assert clock.slept_s == [pytest.approx(0.04 * PAUSE - 0.05)]


def test_no_pause_is_longer_than_a_second(clock: Clock, pace: Pace) -> None:
    pace.ended(took_s=8.0)
    pace.wait()
    assert clock.slept_s == [pytest.approx(LONGEST_S)]


def test_a_cycle_that_planned_is_followed_by_a_pause(
    committed: Stage, clock: Clock, pace: Pace
) -> None:
    committed.submit()
    assert run.run_cycle(at=AT)
    pace.wait()
    assert len(clock.slept_s) == 1


def test_nobody_waits_after_a_cycle_that_had_nothing_to_do(
    committed: Stage, clock: Clock, pace: Pace
) -> None:
    committed.running()
    assert run.run_cycle(at=AT) is None
    pace.wait()
    assert clock.slept_s == []


def test_what_is_left_over_goes_on_at_once(committed: Stage, clock: Clock, pace: Pace) -> None:
    committed.submit("first")
    committed.submit("second")
    assert run.run_cycle(at=AT, policy=Policy(max_admits=1))
    pace.wait()
    assert clock.slept_s == []


def test_what_comes_in_a_pause_is_decided_after_it_without_another_task(
    committed: Stage, clock: Clock, pace: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def submit_instead(seconds: float) -> None:
        monkeypatch.setattr(current_app, "send_task", lambda task, **_: sent.append(task))
        committed.submit("meanwhile")
        clock.sleep(seconds)

    monkeypatch.setattr(pace, "_sleep", submit_instead)
    hints._redis().set(hints._key(hints.CYCLE, {}), 1, ex=5)  # as the task's own hint left it
    pace.ended(took_s=0.04)
    tasks.run_cycle()
    assert Workload.objects.get(name="meanwhile").state == "ADMITTED"
    assert hints.CYCLE not in sent
