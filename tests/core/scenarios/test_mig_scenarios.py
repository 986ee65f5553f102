"""Slices of MIG devices: where they lie, what they are charged to, and who gives them back."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView
from tests.core.build import Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, nodes

CUT = (("3g.40gb", 0, 4), ("1g.10gb", 4, 5), ("1g.10gb", 5, 6))
STATIC = [node("n1", gpus=1, cut=CUT)]
ONE = [node("n1", gpus=1, dynamic=True)]
TWO = [node("n1", gpus=2, dynamic=True)]
ALL = [queue("a", _1g=64, _1gme=8, _2g=64, _3g=64, _7g=8, h100=8)]
BIG, SMALL = pods(flavors="3g"), pods(flavors="1g")


def slice_at(
    name: str, start: int, beyond: int, *, of: str = "a", on: str = "n1/0", priority: int = 0
) -> HoldingView:
    flavor = {1: "1g", 2: "2g", 4: "3g", 8: "7g"}[beyond - start]
    return runs(
        name, of, on, flavor=flavor, span=(start, beyond), priority=priority, since_s=10 - start
    )


CASES = (
    Scenario(
        "a slice that is cut already is given",
        "KAI: allocateMIG_test, MIG job requesting single MIG device",
        snapshot(nodes=STATIC, queues=ALL, pending=[job("w", "a", BIG)]),
        starts="w",
        spans={"w": [("n1/0", 0, 4)]},
    ),
    Scenario(
        "a profile that no device has is no flavor",
        "KAI: allocateMIG_test, MIG job requesting unavailable MIG device",
        snapshot(nodes=STATIC, queues=ALL, pending=[job("w", "a", pods(flavors="2g"))]),
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "who finds all slices of its profile held waits, whatever else is free on the device",
        "KAI: allocateMIG_test, MIG device on node with no available MIG devices",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[slice_at("r", 0, 4)],
            pending=[job("w", "a", BIG), job("x", "a", SMALL)],
        ),
        starts="x",
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "pods of a gang get a slice each",
        "KAI: allocateMIG_test, MIG job with multiple tasks requesting MIG device",
        snapshot(nodes=STATIC, queues=ALL, pending=[job("w", "a", pods(2, flavors="1g"))]),
        starts="w",
        spans={"w": [("n1/0", 4, 5), ("n1/0", 5, 6)]},
    ),
    Scenario(
        "a gang of slices for which one is missing starts none",
        "KAI: docs/batch, all pods of a gang or none",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[slice_at("r", 4, 5)],
            pending=[job("w", "a", pods(2, flavors="1g"))],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a device that is cut is not given whole",
        "KAI: allocateMIG_test, node with Legacy MIG jobs",
        snapshot(nodes=STATIC, queues=ALL, pending=[job("w", "a", pods(flavors="h100"))]),
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "a whole device is not cut",
        "KAI: allocateMIG_test, node with no available MIG devices",
        snapshot(nodes=nodes(1), queues=ALL, pending=[job("w", "a", SMALL)]),
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "slices of one profile fill a device, and the next waits",
        "Volcano: docs/design/dynamic-mig, slices made on demand",
        snapshot(
            nodes=ONE,
            queues=ALL,
            pending=[job(f"w{i}", "a", SMALL, submitted_at=i) for i in range(8)],
        ),
        starts="w0 w1 w2 w3 w4 w5 w6",
        waits={"w7": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "two large slices fill a device to its memory",
        "Volcano: docs/design/dynamic-mig, geometries of a model",
        snapshot(
            nodes=ONE,
            queues=ALL,
            pending=[job("p", "a", BIG), job("q", "a", BIG), job("x", "a", SMALL, submitted_at=9)],
        ),
        starts="p q",
        waits={"x": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a slice starts only where its profile may, so that free memory elsewhere is no use",
        "Volcano: docs/design/dynamic-mig, geometries of a model",
        snapshot(
            nodes=ONE,
            queues=ALL,
            holding=[slice_at("p", 2, 3), slice_at("q", 4, 5)],
            pending=[job("w", "a", BIG)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a small slice joins a device in use, and leaves an empty one whole",
        "KAI: allocateFractionalGpu_test, the node with already running job",
        snapshot(
            nodes=TWO,
            queues=ALL,
            holding=[slice_at("r", 0, 2, on="n1/1")],
            pending=[job("w", "a", SMALL), job("x", "a", pods(flavors="7g"), submitted_at=1)],
        ),
        starts="w x",
        spans={"x": [("n1/0", 0, 8)]},
    ),
    Scenario(
        "a small slice leaves the places where a large one may start",
        "Volcano: docs/design/dynamic-mig, geometries of a model",
        snapshot(
            nodes=ONE,
            queues=ALL,
            pending=[
                job("s1", "a", SMALL),
                job("s2", "a", SMALL, submitted_at=1),
                job("w", "a", BIG, submitted_at=2),
            ],
        ),
        starts="s1 s2 w",
    ),
    Scenario(
        "one slice of a device has its media engines",
        "Volcano: docs/design/dynamic-mig, geometries of a model",
        snapshot(
            nodes=ONE,
            queues=ALL,
            pending=[
                job("m1", "a", pods(flavors="1gme")),
                job("m2", "a", pods(flavors="1gme"), submitted_at=1),
                job("x", "a", SMALL, submitted_at=2),
            ],
        ),
        starts="m1 x",
        waits={"m2": Code.NO_FIT},
    ),
    Scenario(
        "slices are charged to the quota of their profile",
        "Kueue: docs dynamic_resource_allocation, quota by device class",
        snapshot(
            nodes=TWO,
            queues=[queue("a", _1g=1, _3g=1)],
            pending=[
                job("w1", "a", SMALL),
                job("w2", "a", SMALL, submitted_at=1),
                job("w3", "a", BIG, submitted_at=2),
            ],
        ),
        starts="w1 w3",
        waits={"w2": Code.QUOTA_USED},
        numbers={"w2": {"flavor": "1g", "used_milli": 1000, "nominal_milli": 1000}},
    ),
    Scenario(
        "a lender takes slices back",
        "KAI: reclaimMIG_test, Simple reclaim with MIG jobs",
        snapshot(
            nodes=ONE,
            queues=[queue("a", _3g=1), queue("b", _3g=Quota(1, borrow=None))],
            holding=[slice_at("b1", 0, 4, of="b"), slice_at("b2", 4, 8, of="b")],
            pending=[job("w", "a", BIG)],
        ),
        reclaims={"w": "b2"},
    ),
    Scenario(
        "slices within nominal are not taken back",
        "KAI: reclaimMIG_test, Should not reclaim jobs if job is within fair share",
        snapshot(
            nodes=ONE,
            queues=[queue("a", _3g=1), queue("b", _3g=2)],
            holding=[slice_at("b1", 0, 4, of="b"), slice_at("b2", 4, 8, of="b")],
            pending=[job("w", "a", BIG, priority=9)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "higher priority evicts the holder of a slice",
        "KAI: preemptMIG_test, Build preempts train",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[slice_at("r", 0, 4)],
            pending=[job("w", "a", BIG, priority=1)],
        ),
        preempts={"w": "r"},
    ),
    Scenario(
        "of the holders of slices that of the lowest priority goes",
        "KAI: preemptMIG_test, Several jobs with different priorities preempt one",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[
                slice_at("big", 0, 4, priority=-9),
                slice_at("p", 4, 5, priority=1),
                slice_at("q", 5, 6, priority=0),
            ],
            pending=[job("w", "a", SMALL, priority=2)],
        ),
        preempts={"w": "q"},
    ),
    Scenario(
        "a slice of the same priority is not evicted for",
        "KAI: preemptMIG_test, Lower priority job should not preempt",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[slice_at("r", 0, 4)],
            pending=[job("w", "a", BIG)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "for a large slice those go who lie in its way, and no others",
        "Volcano: preempt_test, only commit evictions on the node where preemption succeeds",
        snapshot(
            nodes=ONE,
            queues=ALL,
            holding=[
                slice_at("p", 0, 1),
                slice_at("q", 1, 2),
                slice_at("r", 5, 6),
            ],
            pending=[job("w", "a", BIG, priority=1)],
        ),
        preempts={"w": "r"},
    ),
    Scenario(
        "who prefers a large slice takes the smaller that it accepts where there is no other",
        "Kueue: flavorassigner_test, multiple flavors, Select first flavor which fits",
        snapshot(
            nodes=STATIC,
            queues=ALL,
            holding=[slice_at("r", 0, 4)],
            pending=[job("w", "a", pods(flavors="3g 1g"))],
        ),
        starts="w",
        flavors={"w": "1g"},
    ),
    Scenario(
        "a slice is borrowed as a device is",
        "Kueue: docs dynamic_resource_allocation, borrowing by device class",
        snapshot(
            nodes=ONE,
            queues=[queue("a", _1g=FREE), queue("b", _1g=2)],
            pending=[job(f"w{i}", "a", SMALL, submitted_at=i) for i in range(3)],
        ),
        starts="w0 w1",
        waits={"w2": Code.COHORT_USED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_slices_are_given_so_that(case: Scenario) -> None:
    check(case)
