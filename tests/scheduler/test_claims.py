"""Claims: one worker at a time acts on an attempt; a dead one's claim runs out."""

from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now

from clusters.port import PodPhase
from scheduler.loop.dispatching import dispatch
from scheduler.loop.pods import claims
from scheduler.models import Attempt, Operation, OperationKind
from tests.factories import AT
from tests.scheduler.locks import at_once
from tests.scheduler.stage import LATER, Stage

START, STOP = OperationKind.START, OperationKind.STOP


def claim(stage: Stage, token: UUID, *, limit: int = 100) -> list[claims.Claimed]:
    return claims.claim(cluster_id=stage.cluster.id, token=token, limit=limit)


def admitted(stage: Stage, count: int = 1, **asked: Any) -> list[Attempt]:
    for number in range(count):
        stage.submit(f"w{number}", **asked)
    stage.cycle()
    return list(Attempt.objects.order_by("id"))


def test_what_is_claimed_is_not_given_again_until_it_is_closed(stage: Stage) -> None:
    admitted(stage, 3)
    token = uuid4()
    first = claim(stage, token)
    assert len(first) == 3
    assert claim(stage, uuid4()) == []
    claims.close(attempts=[each.id for each in first], kinds=[START], token=token)
    assert claim(stage, uuid4()) == []
    assert not Operation.objects.filter(done_at=None).exists()


def test_many_claimers_at_once_never_get_one_attempt(committed: Stage) -> None:
    attempts = admitted(committed, 16, gpus=1)

    def take() -> list[UUID]:
        token = uuid4()
        return [each.id for _ in range(4) for each in claim(committed, token, limit=2)]

    taken = [id for ids in at_once(*[take] * 4) for id in ids]
    assert sorted(taken) == [attempt.id for attempt in attempts]


def test_no_more_are_claimed_than_asked_for_however_the_query_is_planned(stage: Stage) -> None:
    admitted(stage, 3)
    with connection.cursor() as cursor:
        for way in ("hashjoin", "mergejoin", "hashagg", "sort", "material"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
    assert len(claim(stage, uuid4(), limit=1)) == 1


def test_what_is_claimed_is_read_by_keys_however_many_rows_there_are(stage: Stage) -> None:
    admitted(stage)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = on")
        assert claim(stage, uuid4())
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("off",)


def test_a_dead_workers_claim_is_taken_over_and_worth_nothing_then(stage: Stage) -> None:
    admitted(stage)
    dead, living = uuid4(), uuid4()
    [mine] = claim(stage, dead)
    stage.release_claims()
    assert len(claim(stage, living)) == 1
    assert claims.still_mine(attempts=[mine], token=dead) == frozenset()
    claims.close(attempts=[mine.id], kinds=[START], token=dead)
    claims.postpone(attempts=[mine.id], why="too late", token=dead)
    claims.let_go(attempts=[mine.id], token=dead)
    assert claims.still_mine(attempts=[mine], token=living) == {mine.id}
    operation = Operation.objects.get()
    assert (operation.done_at, operation.failures) == (None, 0)


def test_a_claim_is_prolonged_by_whose_it_is_alone(stage: Stage) -> None:
    admitted(stage)
    mine, other = uuid4(), uuid4()
    claimed = claim(stage, mine)
    stage.release_claims()
    claims.prolong(attempts=claimed, token=other)
    assert not Attempt.objects.filter(claimed_until__gt=Now()).exists()
    claims.prolong(attempts=claimed, token=mine)
    assert Attempt.objects.filter(claimed_until__gt=Now()).exists()


@pytest.mark.parametrize(("passing_s", "prolonged"), [(0.0, False), (10.0, True)])
def test_a_batch_that_goes_on_for_long_keeps_its_claims(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, passing_s: float, prolonged: bool
) -> None:
    """Each pod's call takes that long."""
    attempts = admitted(stage, 2)
    seconds = count(step=passing_s)
    monkeypatch.setattr(dispatch, "monotonic", lambda: next(seconds))
    asked: list[set[UUID]] = []
    monkeypatch.setattr(
        dispatch, "prolong", lambda *, attempts, token: asked.append({a.id for a in attempts})
    )
    stage.dispatch()
    assert bool(asked) == prolonged
    assert all(ids == {attempt.id for attempt in attempts} for ids in asked)


def test_other_clusters_attempts_are_not_given(stage: Stage) -> None:
    admitted(stage)
    assert claims.claim(cluster_id=uuid4(), token=uuid4(), limit=9) == []


def test_an_attempt_that_shall_stop_is_given_for_that_and_not_for_its_start(stage: Stage) -> None:
    workload = stage.submit()
    stage.cycle()
    stage.cancel(workload)
    token = uuid4()
    [mine] = claim(stage, token)
    assert mine.due is STOP
    claims.close(attempts=[mine.id], kinds=[START, STOP], token=token)
    assert not Operation.objects.filter(done_at=None).exists()


def test_a_stop_that_came_while_starting_stays_due(stage: Stage) -> None:
    workload = stage.submit()
    stage.cycle()
    token = uuid4()
    [mine] = claim(stage, token)
    assert mine.due is START
    stage.cancel(workload)
    assert claims.still_mine(attempts=[mine], token=token) == frozenset()
    claims.close(attempts=[mine.id], kinds=[START], token=token)
    [again] = claim(stage, uuid4())
    assert again.due is STOP


def test_what_failed_waits_longer_each_time_and_a_minute_at_most(stage: Stage) -> None:
    [attempt] = admitted(stage)
    waits = []
    for _ in range(9):
        token = uuid4()
        assert claim(stage, token)
        claims.postpone(attempts=[attempt.id], why="unreachable", token=token)
        assert claim(stage, uuid4()) == []
        waits.append(_wait_s())
        stage.release_claims()
    assert waits == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60], abs=1)
    operation = Operation.objects.get()
    assert (operation.failures, operation.last_error) == (9, "unreachable")


@pytest.mark.parametrize("failures", [1100, 32_767], ids=["a day", "three weeks"])
def test_a_cluster_that_is_away_for(failures: int, stage: Stage) -> None:
    [attempt] = admitted(stage)
    Operation.objects.update(failures=failures)
    token = uuid4()
    claim(stage, token)
    claims.postpone(attempts=[attempt.id], why="unreachable", token=token)
    assert _wait_s() == pytest.approx(60, abs=1)


def test_a_clusters_own_wish_when_to_come_back_is_obeyed(stage: Stage) -> None:
    [attempt] = admitted(stage)
    token = uuid4()
    claim(stage, token)
    claims.postpone(attempts=[attempt.id], why="throttled", token=token, after_s=17)
    assert _wait_s() == pytest.approx(17, abs=1)


def _wait_s() -> float:
    due_at, now = Operation.objects.values_list("due_at", Now()).get()
    return float((due_at - now).total_seconds())


def test_what_is_let_go_may_be_claimed_at_once(stage: Stage) -> None:
    [attempt] = admitted(stage)
    token = uuid4()
    claim(stage, token)
    claims.let_go(attempts=[attempt.id], token=token)
    assert len(claim(stage, uuid4())) == 1


def test_a_gang_stays_as_large_as_it_was_when_one_of_it_has_ended(stage: Stage) -> None:
    """Its others' pods have to be asked for as they were, or they would be strangers."""
    workload = stage.running(count=3)
    ended = workload.placements.get(rank=0)
    stage.observe(stage.report(ended, PodPhase.SUCCEEDED, started_at=AT, finished_at=LATER))
    Operation.objects.update(done_at=None)
    [mine] = claim(stage, uuid4())
    assert [(pod.rank, pod.peers) for pod in mine.pods] == [(1, 3), (2, 3)]


def test_the_oldest_are_given_first(stage: Stage) -> None:
    first, second, *_ = admitted(stage, 4)
    assert [each.id for each in claim(stage, uuid4(), limit=2)] == [first.id, second.id]
