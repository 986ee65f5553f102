"""Arrays of which few run at once, and work that waits for the end of other work."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView, PendingView
from scheduler.core.submitted import ArrayView
from scheduler.core.units import ArrayId
from scheduler.core.waits import UnmetView
from tests.core.build import job, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, nodes

TWO = ArrayView(ArrayId("sweep"), 2)
FOUR = ArrayView(ArrayId("sweep"), 4)


def element(index: int, array: ArrayView = TWO) -> PendingView:
    return replace(job(f"{array.id}-{index}", "a", submitted_at=0), array=array)


def running(index: int, on: str) -> HoldingView:
    return replace(runs(f"sweep-{index}", "a", on), array=TWO)


CASES = (
    Scenario(
        "of an array no more run at once than it says, whatever there is room for",
        "Slurm: job_array, the maximum number of simultaneously running tasks",
        snapshot(
            nodes=nodes(8), queues=[queue("a", h100=8)], pending=[element(i) for i in range(4)]
        ),
        starts="sweep-0 sweep-1",
        waits={"sweep-2": Code.ARRAY_FULL, "sweep-3": Code.ARRAY_FULL},
        numbers={"sweep-3": {"limit_count": 2, "used_count": 2}},
    ),
    Scenario(
        "an element starts as another of its array has ended",
        "Slurm: job_array, the maximum number of simultaneously running tasks",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=8)],
            holding=[running(0, "n1/0")],
            pending=[element(1), element(2)],
        ),
        starts="sweep-1",
        waits={"sweep-2": Code.ARRAY_FULL},
    ),
    Scenario(
        "a full array keeps nobody else of its project waiting",
        "Slurm: job_array, the maximum number of simultaneously running tasks",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=8)],
            holding=[running(0, "n1/0"), running(1, "n1/1")],
            pending=[element(2), job("later", "a", submitted_at=9)],
        ),
        starts="later",
        waits={"sweep-2": Code.ARRAY_FULL},
    ),
    Scenario(
        "work that waits for the end of other work is held, and what comes after it starts",
        "Slurm: sbatch, --dependency",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            pending=[
                replace(job("w", "a", priority=9), waits_for=UnmetView(1, "first")),
                job("x", "a"),
            ],
        ),
        starts="x",
        waits={"w": Code.DEPENDENCY},
        numbers={"w": {"unmet_count": 1, "first": "first"}},
    ),
    Scenario(
        "work that waits in vain stays, and says so, where its submitter asked for that",
        "Slurm: sbatch, --kill-on-invalid-dep=no",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            pending=[replace(job("w", "a"), waits_for=UnmetView(2, "first", 1)), job("x", "a")],
        ),
        starts="x",
        waits={"w": Code.DEPENDENCY},
        numbers={"w": {"unmet_count": 2, "first": "first", "in_vain_count": 1}},
    ),
    Scenario(
        "an element starts after the one of its index in another array, whatever the others do",
        "Slurm: sbatch, --dependency=aftercorr",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=4)],
            pending=[
                element(0, FOUR),
                replace(element(1, FOUR), waits_for=UnmetView(1, "other-1")),
                element(2, FOUR),
            ],
        ),
        starts="sweep-0 sweep-2",
        waits={"sweep-1": Code.DEPENDENCY},
    ),
    Scenario(
        "nobody is evicted for work that waits for the end of other work",
        "Slurm: sbatch, --dependency",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1)],
            holding=[runs("r", "a", "n1/0", priority=-9)],
            pending=[replace(job("w", "a", priority=9), waits_for=UnmetView(1, "first"))],
        ),
        waits={"w": Code.DEPENDENCY},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_few_of_an_array_run_and_what_waits_for_others_waits(case: Scenario) -> None:
    check(case)
