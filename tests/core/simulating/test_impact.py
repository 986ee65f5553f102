"""What a change does to who waits and who borrows: on fleets that can be worked out by hand, and
laws on any."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.explaining.whatif import granted
from scheduler.core.policy import Policy
from scheduler.core.simulating.estimate import HORIZON_S
from scheduler.core.simulating.impact import Effect, Impact, impact
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import Quota, job, node, pods, queue, runs, snapshot
from tests.core.drawn import fleets

H100 = FlavorId("h100")
HOUR = 3600
FREE = Quota(0, borrow=None)
"""Nothing is guaranteed, and all that is idle may be borrowed."""
SEED = st.integers(0, 2**32)


def told(
    before: Snapshot,
    after: Snapshot,
    run_times: dict[str, tuple[int, ...]] | None = None,
    passes: int = 20,
) -> Impact:
    return impact(
        before=before,
        after=after,
        policy=Policy(),
        run_times={ProjectId(p): times for p, times in (run_times or {}).items()},
        passes=passes,
        seed=42,
    )


def by_project(found: Impact) -> dict[str, Effect]:
    return {effect.project: effect for effect in found.effects}


def more(of: Snapshot, project: str, gpus: int) -> Snapshot:
    return granted(of, ProjectId(project), H100, gpus * 1000)


def two_wait(limit_s: int | None = HOUR) -> Snapshot:
    """For both devices, which c has for an hour: b, then a. Neither has quota: they borrow."""
    return snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=2)],
        holding=[runs("r", "c", "n1/0", "n1/1", since_s=0, limit_s=limit_s)],
        pending=[
            job("wb", "b", pods(2), submitted_at=1, limit_s=HOUR),
            job("wa", "a", pods(2), submitted_at=2, limit_s=HOUR),
        ],
    )


def test_who_gets_the_quota_goes_first_and_who_borrows_waits_for_it() -> None:
    before = two_wait()
    found = by_project(told(before, more(before, "a", 2)))
    assert found.keys() == {"a", "b"}
    a, b = found["a"], found["b"]
    # Time goes in rounds: a start is told as the end of its step, up to a part of 1/32 later.
    assert (a.after_s, b.before_s) == (HOUR, HOUR)
    assert 2 * HOUR <= a.before_s == b.after_s <= 2 * HOUR * 33 // 32
    assert a.low_s == a.high_s == a.after_s - a.before_s < 0
    assert b.low_s == b.high_s == b.after_s - b.before_s > 0
    assert (a.waiting_count, a.starts_count, b.evicted_count) == (1, 0, 0)


def test_borrowing_that_ends_is_told_with_what_goes_back() -> None:
    """b borrows both devices and a's work waits: with a guarantee it takes them back."""
    before = snapshot(
        nodes=[node("n1", gpus=2)],
        queues=[queue("a", h100=FREE), queue("b", h100=FREE), queue("c", h100=2)],
        holding=[runs("r", "b", "n1/0", "n1/1", since_s=HOUR, of=pods(2))],
        pending=[job("wa", "a", pods(2), limit_s=HOUR)],
    )
    found = by_project(told(before, more(before, "a", 2)))
    assert (found["b"].evicted_count, found["b"].returned_milli) == (1, {H100: 2000})
    assert (found["a"].evicted_count, found["a"].returned_milli) == (0, {})
    assert found["b"].borrowed_milli == {H100: (2000, 0)}
    assert found["a"].borrowed_milli == {}  # not yet: what b gives back is seen first
    # Nobody knows when b's work ends; a waits for what b gives back.
    assert found["a"].before_s == HORIZON_S
    assert found["a"].after_s == 0
    assert found["a"].low_s == found["a"].high_s == -HORIZON_S


def test_work_that_starts_at_once_is_counted() -> None:
    before = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[queue("a"), queue("b", h100=4)],
        pending=[job("w1", "a", pods(1)), job("w2", "a", pods(1)), job("w3", "b", pods(1))],
    )
    found = by_project(told(before, more(before, "a", 1)))
    assert (found["a"].starts_count, found["b"].starts_count) == (1, 0)
    assert (found["a"].before_s, found["a"].after_s) == (HORIZON_S, HORIZON_S)  # one still waits


def test_who_holds_by_a_quota_what_it_borrowed_is_told_though_nothing_waits() -> None:
    before = snapshot(
        nodes=[node("n1", gpus=4)],
        queues=[queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)],
        holding=[runs("r", "a", "n1/0", "n1/1", "n1/2", since_s=HOUR)],
    )
    (found,) = told(before, more(before, "a", 1)).effects
    assert (found.project, found.waiting_count) == ("a", 0)
    assert found.borrowed_milli == {H100: (2000, 1000)}
    assert (found.before_s, found.after_s, found.evicted_count) == (0, 0, 0)


def test_common_random_numbers_leave_a_difference_of_the_change_alone() -> None:
    """Run times from a minute to a day: waits lie anywhere there, their difference does not."""
    spread = tuple(range(60, 86_400, 60))
    before = two_wait(limit_s=None)
    before = replace(
        before, pending=tuple(replace(p, run_time_limit_s=None) for p in before.pending)
    )
    run_times = {"a": (HOUR,) * 5, "b": (HOUR,) * 5, "c": spread}
    found = by_project(told(before, more(before, "a", 2), run_times, passes=100))["a"]
    assert abs(found.before_s - found.after_s) < 2 * HOUR
    assert -2 * HOUR < found.low_s <= found.high_s < 0
    other = by_project(told(before, before, run_times, passes=100))["a"]
    assert (other.low_s, other.high_s) == (0, 0)


def test_it_stops_when_it_is_late_and_says_how_many_passes_it_made() -> None:
    before = two_wait()
    found = impact(
        before=before, after=before, policy=Policy(), run_times={}, passes=20, seed=1,
        late=lambda: True,
    )  # fmt: skip
    assert found.passes == 1


@settings(max_examples=60, deadline=None)
@given(SEED, st.integers(0, 10), st.integers(0, 8))
def test_no_change_has_no_effect(seed: int, running: int, pending: int) -> None:
    of = fleets.fleet(seed, running, pending)
    found = told(of, of, passes=3)
    for effect in found.effects:
        assert effect.before_s == effect.after_s
        assert (effect.low_s, effect.high_s) == (0, 0)
        assert (effect.starts_count, effect.evicted_count, effect.borrowed_milli) == (0, 0, {})
    waiting = {pending.project for pending in of.pending}
    assert {effect.project for effect in found.effects} == waiting


@settings(max_examples=60, deadline=None)
@given(SEED, st.integers(0, 10), st.integers(0, 8))
def test_the_order_of_what_is_given_does_not_matter(seed: int, running: int, pending: int) -> None:
    of = fleets.fleet(seed, running, pending)
    project, flavor = of.queues[0].project, of.flavors[0].id
    changed = granted(of, project, flavor, 2000)
    turned = replace(of, pending=of.pending[::-1], holding=of.holding[::-1])
    changed_too = granted(turned, project, flavor, 2000)
    assert told(of, changed, passes=3) == told(turned, changed_too, passes=3)


@settings(max_examples=60, deadline=None)
@given(SEED, st.integers(0, 10), st.integers(0, 8))
def test_who_is_granted_more_than_there_is_borrows_nothing_of_it(
    seed: int, running: int, pending: int
) -> None:
    of = fleets.fleet(seed, running, pending)
    project, flavor = of.queues[0].project, of.flavors[0].id
    for effect in told(of, granted(of, project, flavor, 10**9), passes=1).effects:
        if effect.project == project:
            assert effect.borrowed_milli.get(flavor, (0, 0))[1] == 0
