"""What makes a project's share: all flavors, its tenant, and what it used in the past."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import PastView, QueueView
from scheduler.core.units import FlavorId
from tests.core.build import (
    Quota,
    cohort,
    cpu_pods,
    job,
    node,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, line, nodes


def after(of: QueueView, hours: int) -> QueueView:
    """The project has used so many hours of one H100."""
    return replace(of, past=(PastView(FlavorId("h100"), hours * 3_600_000),))


CASES = (
    Scenario(
        "the share of a tenant comes before that of its project",
        "Kueue: scheduler_fs_test, hierarchical fair sharing, workload which wins tournament",
        snapshot(
            nodes=nodes(6),
            queues=[
                queue("a1", tenant="s", h100=FREE),
                queue("a2", tenant="s", h100=FREE),
                queue("b", tenant="t", h100=FREE),
                queue("z", h100=6),
            ],
            holding=[runs("r", "a1", *gpus("n1", 0, 3)), runs("s", "b", "n1/3", "n1/4")],
            pending=[job("fresh", "a2"), job("more", "b", submitted_at=1)],
        ),
        starts="more",
        waits={"fresh": Code.COHORT_USED},
    ),
    Scenario(
        "a heavier tenant gets more for all its projects together",
        "KAI: allocate_test, Allocate Departments with smaller ratio 1st",
        snapshot(
            nodes=nodes(4),
            cohorts=[cohort("s", weight=3), cohort("t")],
            queues=[
                queue("a", tenant="s", h100=FREE),
                queue("b", tenant="s", h100=FREE),
                queue("c", tenant="t", h100=FREE),
                queue("z", h100=4),
            ],
            pending=[*line("a", 2), *line("b", 2, since=10), *line("c", 2, since=20)],
        ),
        starts="a0 c0 b0 a1",
        waits=dict.fromkeys(["b1", "c1"], Code.COHORT_USED),
    ),
    Scenario(
        "what a tenant's other project leaves is no borrowing of the tenant",
        "Kueue: scheduler_fs_test, hierarchical nominal-first prefers non-borrowing subtree",
        snapshot(
            nodes=nodes(6),
            queues=[
                queue("a1", tenant="s", h100=FREE),
                queue("a2", tenant="s", h100=4),
                queue("b", tenant="t", h100=FREE),
                queue("z", h100=2),
            ],
            holding=[runs("r", "a1", *gpus("n1", 0, 3)), runs("s", "b", "n1/3", "n1/4")],
            pending=[job("other", "b"), job("inside", "a1", submitted_at=1)],
        ),
        starts="inside",
        waits={"other": Code.COHORT_USED},
    ),
    Scenario(
        "the larger part of any flavor counts",
        "Armada: preempting_queue_scheduler_test, DominantResourceFairness",
        snapshot(
            nodes=[node("n1", gpus=8, cores=64)],
            queues=[
                queue("a", h100=FREE, cpu=FREE),
                queue("b", h100=FREE, cpu=FREE),
                queue("z", h100=4, cpu=40),
            ],
            holding=[
                runs("r", "a", "n1/0", "n1/1"),
                runs("s", "b", "n1", flavor="cpu", cores=16),
                runs("t", "b", "n1/2"),
            ],
            pending=[job("a1", "a"), job("b1", "b", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "cores weigh as much as devices where they are the larger part",
        "Volcano: docs/design/drf, dominant share",
        snapshot(
            nodes=[node("n1", gpus=8, cores=64)],
            queues=[
                queue("a", h100=FREE, cpu=FREE),
                queue("b", h100=FREE, cpu=FREE),
                queue("z", h100=8, cpu=20),
            ],
            holding=[
                runs("r", "a", *gpus("n1", 0, 2)),
                runs("s", "b", "n1", flavor="cpu", cores=10),
                runs("t", "b", "n1/2"),
            ],
            pending=[
                job("b1", "b", cpu_pods(cores=6)),
                job("a1", "a", cpu_pods(cores=6), submitted_at=1),
            ],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "use within nominal is no share",
        "Kueue: fair_sharing_test, usage below nominal",
        snapshot(
            nodes=nodes(8),
            queues=[
                queue("a", h100=Quota(5, borrow=None)),
                queue("b", h100=FREE),
                queue("z", h100=2),
            ],
            holding=[runs("r", "a", *gpus("n1", 0, 5)), runs("s", "b", "n1/5")],
            pending=[job("b1", "b"), job("a1", "a", submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "of equal shares who used less in the past starts",
        "Kueue: scheduler_afs_test, admits workload from less active localqueue",
        snapshot(
            nodes=nodes(1),
            queues=[
                after(queue("a", h100=FREE), 5),
                after(queue("b", h100=FREE), 4),
                queue("z", h100=1),
            ],
            pending=[job("a1", "a"), job("b1", "b", submitted_at=1)],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "of equal past use the oldest starts",
        "Kueue: scheduler_afs_test, schedules normally when queues have equal usage",
        snapshot(
            nodes=nodes(1),
            queues=[
                after(queue("a", h100=FREE), 5),
                after(queue("b", h100=FREE), 5),
                queue("z", h100=1),
            ],
            pending=[job("a1", "a", submitted_at=1), job("b1", "b")],
        ),
        starts="b1",
        waits={"a1": Code.COHORT_USED},
    ),
    Scenario(
        "a heavier project may have used more in the past",
        "KAI: docs/time-based-fairshare, past use against weight",
        snapshot(
            nodes=nodes(1),
            queues=[
                after(queue("a", weight=4, h100=FREE), 7),
                after(queue("b", weight=2, h100=FREE), 4),
                queue("z", h100=1),
            ],
            pending=[job("b1", "b"), job("a1", "a", submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "the share now comes before past use",
        "KAI: docs/time-based-fairshare, present allocation and past use",
        snapshot(
            nodes=nodes(2),
            queues=[
                after(queue("a", h100=FREE), 50),
                after(queue("b", h100=FREE), 1),
                queue("z", h100=2),
            ],
            holding=[runs("r", "b", "n1/0")],
            pending=[job("b1", "b"), job("a1", "a", submitted_at=1)],
        ),
        starts="a1",
        waits={"b1": Code.COHORT_USED},
    ),
    Scenario(
        "the past of a tenant comes before that of its project",
        "Slurm: fair_tree.html, siblings are compared level by level",
        snapshot(
            nodes=nodes(1),
            queues=[
                after(queue("a1", tenant="s", h100=FREE), 9),
                queue("a2", tenant="s", h100=FREE),
                after(queue("b", tenant="t", h100=FREE), 8),
                queue("z", h100=1),
            ],
            pending=[job("fresh", "a2"), job("other", "b", submitted_at=1)],
        ),
        starts="other",
        waits={"fresh": Code.COHORT_USED},
    ),
    Scenario(
        "unlike in KAI, past use evicts nobody",
        "KAI: docs/time-based-fairshare, reclaim based on usage",
        snapshot(
            nodes=nodes(2),
            queues=[
                after(queue("a", h100=FREE), 99),
                queue("b", h100=FREE),
                queue("z", h100=2),
            ],
            holding=[runs("r", "a", "n1/0", "n1/1")],
            pending=[job("b1", "b", priority=9)],
        ),
        waits={"b1": Code.COHORT_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_share_is_measured_so_that(case: Scenario) -> None:
    check(case)
