"""The generator is Kueue's, and the fleet on the counted clock runs all of it to the end."""

from collections import Counter
from statistics import fmean

import pytest

from tests.bench import kueue


def test_it_is_kueues_baseline() -> None:
    arrivals = kueue.arrivals()
    assert Counter(each.kind.name for each in arrivals) == {
        "small": 10_500,
        "medium": 3_000,
        "large": 1_500,
    }
    assert len({each.name for each in arrivals}) == 15_000
    assert arrivals[0].at_ms == 0
    assert arrivals[-1].at_ms == 49 * 1200
    units = kueue.COHORTS * kueue.QUEUES * kueue.NOMINAL
    work_ms = sum(each.kind.units * each.kind.runs_ms for each in arrivals)
    assert (units, work_ms // units) == (600, 66_000)


def test_every_workload_is_admitted_and_the_large_ones_wait_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = tuple(kind._replace(workloads=5) for kind in kueue.KINDS)
    monkeypatch.setattr(kueue, "KINDS", few)
    baseline = kueue.Baseline()
    baseline.run()
    queues = kueue.COHORTS * kueue.QUEUES
    counts = {name: len(waits) for name, waits in baseline.waits_ms.items()}
    assert counts == {kind.name: 5 * queues for kind in few}
    means = {name: fmean(waits) for name, waits in baseline.waits_ms.items()}
    assert min(means, key=means.__getitem__) == "large"
