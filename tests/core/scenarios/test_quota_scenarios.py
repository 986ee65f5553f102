"""What a project may hold by its own quota, and what it is told when that is not enough."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import Isolation
from tests.core.build import (
    A30,
    T4,
    Quota,
    cpu_pods,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.scenarios.scenario import Scenario, check, gpus, nodes, singles

TWO_MODELS = [node("n1", gpus=4), node("n2", gpus=4, model=A30)]
SHARED_T4 = [node("n1", gpus=2, model=T4, shares=Isolation.MEMORY)]

CASES = (
    Scenario(
        "work starts while nominal quota is left",
        "Kueue: scheduler_test, workload fits in single clusterQueue",
        snapshot(
            nodes=nodes(8), queues=[queue("a", h100=4)], pending=[job("w", "a", pods(gpus=4))]
        ),
        starts="w",
    ),
    Scenario(
        "work waits where the nominal quota is used, though devices are free",
        "Kueue: scheduler_test, single clusterQueue full",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=4)],
            holding=[runs("r", "a", *gpus("n1", 0, 3))],
            pending=[job("w", "a", pods(gpus=2))],
        ),
        waits={"w": Code.QUOTA_USED},
        numbers={
            "w": {
                "asked_milli": 2000,
                "used_milli": 3000,
                "nominal_milli": 4000,
                "available_milli": 1000,
            }
        },
    ),
    Scenario(
        "who asks for more than may ever be held is told so, and not that quota is in use",
        "Kueue: KEP-10852, why a workload is inadmissible",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=4)],
            holding=[runs("r", "a", *gpus("n1", 0, 3))],
            pending=[job("w", "a", pods(gpus=5))],
        ),
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"asked_milli": 5000, "nominal_milli": 4000, "borrowable_milli": 0}},
    ),
    Scenario(
        "a flavor for which a project has no row is not borrowed",
        "Kueue: scheduler_test, cannot borrow resource not listed in clusterQueue",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", t4=Quota(4, borrow=None)), queue("b", h100=8)],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.NEVER_ADMISSIBLE},
        numbers={"w": {"nominal_milli": 0, "borrowable_milli": 0}},
    ),
    Scenario(
        "work of a project that is unknown waits, and others start",
        "Kueue: scheduler_test, skip workload with missing or deleted ClusterQueue",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2)],
            pending=[job("lost", "ghost", priority=9), job("w", "a")],
        ),
        starts="w",
        waits={"lost": Code.NEVER_ADMISSIBLE},
    ),
    Scenario(
        "a flavor that does not exist makes the work invalid, and others start",
        "Kueue: scheduler_test, workload should not fit in clusterQueue with nonexistent flavor",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2)],
            pending=[job("w", "a", pods(flavors="nowhere")), job("x", "a")],
        ),
        starts="x",
        waits={"w": Code.INVALID},
    ),
    Scenario(
        "projects that lend nothing each use their own and no more",
        "Kueue: scheduler_test, admit in different cohorts",
        snapshot(
            nodes=nodes(8),
            queues=[queue(p, h100=Quota(2, borrow=None, lend=0)) for p in ("a", "b")],
            pending=[
                job("a1", "a", pods(gpus=2)),
                job("a2", "a", submitted_at=1),
                job("b1", "b", pods(gpus=1), submitted_at=2),
            ],
        ),
        starts="a1 b1",
        waits={"a2": Code.COHORT_USED},
    ),
    Scenario(
        "two projects start within their nominal in one plan",
        "Kueue: scheduler_test, admit in same cohort with no borrowing",
        snapshot(
            nodes=nodes(4),
            queues=[queue("a", h100=2), queue("b", h100=2)],
            pending=[job("a1", "a", pods(gpus=2)), job("b1", "b", pods(gpus=2), submitted_at=1)],
        ),
        starts="a1 b1",
    ),
    Scenario(
        "pods of two flavors are charged to the quota of each",
        "Kueue: scheduler_test, assign multiple resources and flavors",
        snapshot(
            nodes=TWO_MODELS,
            queues=[queue("a", h100=2, a30=3)],
            pending=[
                job(name, "a", pods(1, name="x"), pods(2, flavors="a30", name="y"), submitted_at=i)
                for i, name in enumerate(["w1", "w2"])
            ],
        ),
        starts="w1",
        waits={"w2": Code.QUOTA_USED},
        flavors={"w1": "a30 h100"},
        numbers={"w2": {"flavor": "a30", "asked_milli": 2000, "used_milli": 2000}},
    ),
    Scenario(
        "where one set of pods lacks quota the others do not start",
        "Kueue: flavorassigner_test, multiple resources in a group, doesn't fit",
        snapshot(
            nodes=TWO_MODELS,
            queues=[queue("a", h100=4, a30=1)],
            holding=[runs("r", "a", "n2/0", flavor="a30")],
            pending=[job("w", "a", pods(2, name="x"), pods(1, flavors="a30", name="y"))],
        ),
        waits={"w": Code.QUOTA_USED},
    ),
    Scenario(
        "work without devices is charged its cores",
        "KAI: allocate_test, don't allow job over QUEUE deserved CPU",
        snapshot(
            nodes=nodes(0),
            queues=[queue("a", cpu=5)],
            pending=[
                job("c1", "a", cpu_pods(2, cores=2)),
                job("c2", "a", cpu_pods(cores=1.5), submitted_at=1),
            ],
        ),
        starts="c1",
        waits={"c2": Code.QUOTA_USED},
        numbers={"c2": {"asked_milli": 1500, "used_milli": 4000}},
    ),
    Scenario(
        "unlike in Kueue, cores beside a device need no quota of cores",
        "Kueue: scheduler_test, cannot borrow resource not listed in clusterQueue",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=2, cpu=1)],
            pending=[
                job("w", "a", pods(2, cores=30)),
                job("c", "a", cpu_pods(cores=1), submitted_at=1),
            ],
        ),
        starts="w c",
    ),
    Scenario(
        "shares of a device are charged in thousandths",
        "KAI: allocateFractionalGpu_test, 4 pending interactive shared gpus, allocate 3",
        snapshot(
            nodes=SHARED_T4,
            queues=[queue("a", t4share=0.75)],
            pending=[
                job("s1", "a", pods(share=0.5, flavors="t4share")),
                job("s2", "a", pods(share=0.25, flavors="t4share"), submitted_at=1),
                job("s3", "a", pods(share=0.01, flavors="t4share"), submitted_at=2),
            ],
        ),
        starts="s1 s2",
        waits={"s3": Code.QUOTA_USED},
        numbers={"s3": {"asked_milli": 10, "used_milli": 750}},
    ),
    Scenario(
        "a project with nothing of its own that may not borrow starts nothing",
        "KAI: docs/queues, quota 0 and limit",
        snapshot(
            nodes=nodes(2),
            queues=[queue("a", h100=0), queue("b", h100=2)],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.NEVER_ADMISSIBLE},
    ),
    Scenario(
        "unlike in YuniKorn, quota that is cut below use takes nothing back",
        "YuniKorn: quota_preemptor_test, TestQuotaChangeTryPreemption",
        snapshot(
            nodes=nodes(8),
            queues=[queue("a", h100=2)],
            holding=singles("r1 r2 r3 r4", "a", gpus("n1", 0, 4)),
            pending=[job("w", "a")],
        ),
        waits={"w": Code.QUOTA_USED},
        numbers={"w": {"used_milli": 4000, "nominal_milli": 2000, "available_milli": 0}},
    ),
    Scenario(
        "quota that is not lent stays usable while others are over theirs",
        "Kueue: KEP-1224, lending limit",
        snapshot(
            nodes=nodes(8, 8),
            queues=[queue("a", h100=Quota(4, borrow=None, lend=1)), queue("b", h100=4)],
            holding=[runs("r", "b", *gpus("n1", 0, 8), preemptible=False)],
            pending=[job("w", "a", pods(gpus=4)), job("x", "a", pods(gpus=3), submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "an amount that nobody can mean is refused, and overflows nothing",
        "Kueue: scheduler_test, prevent integer overflow when sum of requests exceeds MaxInt64",
        snapshot(
            nodes=nodes(1),
            queues=[queue("a", h100=1, cpu=64)],
            pending=[job("w", "a", cpu_pods(4, cores=2.0**60)), job("x", "a")],
        ),
        starts="x",
        waits={"w": Code.INVALID},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_quota_of_a_project_decides_that(case: Scenario) -> None:
    check(case)
