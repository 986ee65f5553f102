"""When will it start: truths that a simulation with known ends must tell."""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.simulating.estimate import HORIZON_S, LEAST_HISTORY, Basis, Forecast, forecast
from scheduler.core.snapshot import HoldingView, PendingView, Snapshot
from scheduler.core.units import ClusterId, ProjectId, WorkloadId
from tests.core.build import AT, cluster, job, node, pods, queue, runs, snapshot

NODES = [node("n1", gpus=2)]
QUEUES = [queue("a", h100=4), queue("b", h100=4)]


def told(
    of: Snapshot, run_times: dict[str, tuple[int, ...]] | None = None, *, passes: int = 20
) -> dict[str, Forecast]:
    found = forecast(
        snapshot=of,
        policy=Policy(),
        run_times={ProjectId(p): times for p, times in (run_times or {}).items()},
        passes=passes,
        seed=42,
    )
    return {f.workload: f for f in found}


def fleet(holding: list[HoldingView], *pending: PendingView) -> Snapshot:
    return snapshot(nodes=NODES, queues=QUEUES, holding=holding, pending=pending)


def test_what_starts_now_is_told_as_now() -> None:
    assert told(fleet([], job("w")))["w"] == Forecast(WorkloadId("w"), 0, 0, Basis.PLAN, 20)


def test_a_declared_limit_is_when_it_starts_without_history() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=100, limit_s=3700)
    found = told(fleet([busy], job("w")))["w"]
    assert found == Forecast(WorkloadId("w"), 3600, 3600, Basis.LIMIT, 20)


def test_without_limit_and_history_there_is_no_basis() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=100)
    found = told(fleet([busy], job("w")))["w"]
    assert found == Forecast(WorkloadId("w"), None, None, Basis.NONE, 20)


def test_history_is_taken_given_what_has_run_already() -> None:
    """Half of the finished work ran 100 s and half 1,000 s; this has run 500 s: 500 s are left."""
    busy = runs("r", "a", "n1/0", "n1/1", since_s=500)
    found = told(fleet([busy], job("w")), {"a": (100,) * 3 + (1000,) * 3})["w"]
    assert found == Forecast(WorkloadId("w"), 500, 500, Basis.HISTORY, 20)


def test_p50_and_p90_spread_as_the_run_times_do() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0)
    found = told(fleet([busy], job("w")), {"a": tuple(range(1, 1001))}, passes=200)["w"]
    assert found.p50_s is not None
    assert found.p90_s is not None
    assert found.p50_s == pytest.approx(500, abs=100)
    assert found.p90_s == pytest.approx(900, abs=60)


def test_of_two_passes_the_earlier_is_the_median_and_the_later_is_p90() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0)
    found = told(fleet([busy], job("w")), {"a": tuple(range(1, 1001))}, passes=2)["w"]
    assert found.p50_s is not None
    assert found.p90_s is not None
    assert found.p50_s < found.p90_s


def test_who_is_late_gets_fewer_passes_and_not_none() -> None:
    asked: list[None] = []

    def late() -> bool:
        asked.append(None)
        return len(asked) > 2

    busy = runs("r", "b", "n1/0", "n1/1", since_s=0)
    [found] = forecast(
        snapshot=fleet([busy], job("w")),
        policy=Policy(),
        run_times={ProjectId("b"): tuple(range(1, 1001))},
        passes=20,
        seed=42,
        late=late,
    )
    assert found.passes == 3
    assert found.p50_s is not None


def test_a_start_in_half_of_the_passes_has_no_p90() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0)
    times = (100,) * 6 + (2 * HORIZON_S,) * 2
    found = told(fleet([busy], job("w")), {"a": times}, passes=100)["w"]
    assert (found.p50_s, found.p90_s) == (100, None)


def test_the_history_of_a_project_says_nothing_of_another() -> None:
    busy = runs("r", "b", "n1/0", "n1/1")
    assert told(fleet([busy], job("w")), {"a": (10,) * 9})["w"].basis is Basis.NONE


def test_a_limit_cuts_what_history_draws() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=50)
    assert told(fleet([busy], job("w")), {"a": (9000,) * 9})["w"].p50_s == 50
    assert told(fleet([busy], job("w")), {"a": (9000,) * 9})["w"].basis is Basis.LIMIT


def test_a_queue_starts_one_after_the_other() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=100)
    pending = [job(f"w{i}", "a", pods(gpus=2), submitted_at=i, limit_s=100) for i in range(3)]
    found = told(fleet([busy], *pending))
    assert [found[f"w{i}"].p50_s for i in range(3)] == [100, 200, 300]


def test_a_gang_waits_for_the_last_device_that_it_needs() -> None:
    ends = [runs(f"r{i}", "a", f"n1/{i}", since_s=0, limit_s=100 * (i + 1)) for i in range(2)]
    found = told(fleet(ends, job("gang", "a", pods(2, gpus=1)), job("one", "b", submitted_at=1)))
    assert found["one"].p50_s == 100
    assert found["gang"].p50_s is None


def test_work_that_never_ends_keeps_what_comes_after_it_waiting() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=100)
    endless, last = job("endless", "a", pods(gpus=2)), job("last", "a", submitted_at=1)
    found = told(fleet([busy], endless, last))
    assert found["endless"].p50_s == 100
    assert found["last"].basis is Basis.NONE


def test_what_would_start_beyond_the_horizon_is_not_told() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=2 * HORIZON_S)
    assert told(fleet([busy], job("w")))["w"].p50_s is None


def test_victims_make_way_at_once_for_the_one_who_waits_for_them() -> None:
    low = runs("low", "a", "n1/0", "n1/1")
    found = told(fleet([low], job("w", "a", priority=1)))["w"]
    assert found == Forecast(WorkloadId("w"), 0, 0, Basis.PLAN, 20)


def test_a_few_finished_runs_are_no_ground() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0)
    few = {"a": (100,) * (LEAST_HISTORY - 1)}
    assert told(fleet([busy], job("w")), few)["w"].basis is Basis.NONE
    enough = {"a": (100,) * LEAST_HISTORY}
    assert told(fleet([busy], job("w")), enough)["w"].p50_s == 100
    limited = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=50)
    assert told(fleet([limited], job("w")), few)["w"] == Forecast(
        WorkloadId("w"), 50, 50, Basis.LIMIT, 20
    )


def test_victims_wait_again_in_the_clusters_that_they_accept() -> None:
    """The victim may not go to c2, which is free; so the third waits for c1 until it has run."""
    clusters = [cluster("c1", [node("n1", gpus=1)]), cluster("c2", [node("n2", gpus=1)])]
    asked = job("low", "a", limit_s=100)
    low = runs("low", "a", "n1/0", limit_s=100, since_s=0)
    low = replace(low, pod_sets=asked.pod_sets, clusters=(ClusterId("c1"),))
    pending = [
        job("high", "a", priority=1, clusters="c1", limit_s=1000),
        job("third", "a", submitted_at=AT + 9, clusters="c2"),
    ]
    of = snapshot(clusters=clusters, queues=QUEUES, holding=[low], pending=pending)
    found = told(of)
    assert (found["high"].p50_s, found["third"].p50_s) == (0, 0)
    behind = job("third", "a", submitted_at=AT + 9, clusters="c1", limit_s=100)
    found = told(replace(of, pending=(pending[0], behind)))
    assert found["third"].p50_s == 1100


@pytest.mark.parametrize("returns", [True, False])
def test_evicted_work_that_still_gives_back_waits_again_before_later_work(returns: bool) -> None:
    low = runs("low", "a", "n1/0", "n1/1", limit_s=100, since_s=10, releasing=True)
    if returns:
        low = replace(low, pod_sets=job("low", "a", pods(gpus=2)).pod_sets)
    pending = [
        job("high", "a", pods(gpus=2), priority=1, limit_s=1000),
        job("later", "a", pods(gpus=2), submitted_at=AT + 9),
    ]
    found = told(fleet([low], *pending))
    assert found["high"].p50_s == 0
    assert found["later"].p50_s == (1100 if returns else 1000)


def test_quota_is_kept_in_the_future_too() -> None:
    busy = runs("r", "a", "n1/0", since_s=0, limit_s=100)
    of = snapshot(nodes=NODES, queues=[queue("a", h100=1)], holding=[busy], pending=[job("w")])
    assert told(of)["w"].p50_s == 100


def test_each_pending_workload_gets_one_forecast_in_the_order_of_ids() -> None:
    pending = [job(f"w{i}", "a", submitted_at=-i) for i in range(5)]
    found = forecast(snapshot=fleet([], *pending), policy=Policy(), run_times={}, passes=3, seed=1)
    assert [f.workload for f in found] == [f"w{i}" for i in range(5)]


def test_another_seed_draws_other_ends() -> None:
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0)
    arguments = {
        "snapshot": fleet([busy], job("w")),
        "policy": Policy(),
        "run_times": {ProjectId("a"): tuple(range(1, 5000))},
        "passes": 1,
    }
    starts = {forecast(**arguments, seed=seed)[0].p50_s for seed in range(20)}  # type: ignore[arg-type]  # by name
    assert len(starts) > 15


def test_the_end_of_a_long_queue_is_left_without_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.core.simulating.estimate.MOST_PENDING", 2)
    busy = runs("r", "a", "n1/0", "n1/1", since_s=0, limit_s=100)
    pending = [job(f"w{i}", "a", pods(gpus=2), submitted_at=i, limit_s=100) for i in range(3)]
    found = told(fleet([busy], *pending))
    assert [found[f"w{i}"].p50_s for i in range(3)] == [100, 200, None]
