"""A quota that was lowered below what is held."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import QueueView
from tests.core.build import AT, Quota, job, queue, runs, snapshot
from tests.core.scenarios.scenario import Scenario, check, gpus, nodes, singles


def lowered(to: float, enforce_at: int | None, *, borrow: float = 0) -> QueueView:
    """Of project "a", enforced from then on."""
    made = queue("a", h100=Quota(to, borrow))
    return replace(made, quotas=(replace(made.quotas[0], enforce_at=enforce_at),))


FOUR = singles("x1 x2 x3 x4", "a", gpus("n1", 0, 4))

CASES = (
    Scenario(
        "a quota that was lowered below its use stops nothing that runs",
        "Slurm: resource_limits, running jobs are not cancelled when a limit is lowered",
        snapshot(
            nodes=nodes(8),
            queues=[lowered(2, None)],
            holding=FOUR,
            pending=[job("w", "a")],
        ),
        waits={"w": Code.QUOTA_USED},
    ),
    Scenario(
        "nothing is stopped for it before the delay is over",
        "YuniKorn: docs quota preemption, quota.preemption.delay",
        snapshot(
            nodes=nodes(8),
            queues=[lowered(2, AT + 1)],
            holding=FOUR,
            pending=[job("w", "a")],
        ),
        waits={"w": Code.QUOTA_USED},
    ),
    Scenario(
        "after the delay what is beyond it is preempted, and no more",
        "YuniKorn: quota_preemption_test, preempts down to the new maximum",
        snapshot(
            nodes=nodes(8),
            queues=[lowered(1, AT, borrow=1)],
            holding=FOUR,
            pending=[job("w", "a")],
        ),
        gives="x1 x2",
        waits={"w": Code.QUOTA_USED},
    ),
    Scenario(
        "what asked not to be preempted is not, though the quota stays passed",
        "YuniKorn: quota_preemption_test, allocations that opted out are left",
        snapshot(
            nodes=nodes(8),
            queues=[lowered(1, AT)],
            holding=[replace(each, preemptible=each.id == "x4") for each in FOUR],
        ),
        gives="x4",
    ),
    Scenario(
        "unlike in YuniKorn, who is younger stays where another loses less work",
        "YuniKorn: quota_preemption_test, victims sorted by age",
        snapshot(
            nodes=nodes(8),
            queues=[lowered(1, AT)],
            holding=[
                replace(runs("saved", "a", "n1/0", since_s=900), checkpointed_at=AT - 10),
                runs("young", "a", "n1/1", since_s=60),
            ],
        ),
        gives="saved",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_beyond_a_quota_is_taken_back_when_it_is_enforced(case: Scenario) -> None:
    check(case)
