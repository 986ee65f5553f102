"""Which of the flavors that it accepts a workload gets."""

import pytest

from scheduler.core.reasons import ReasonCode as Code
from tests.core.build import A30, Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check, gpus, singles

BOTH = [node("n1", gpus=4), node("n2", gpus=4, model=A30)]

CASES = (
    Scenario(
        "two projects borrow two flavors in one plan",
        "Kueue: scheduler_test, two workloads can borrow different resources in the same cycle",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=FREE), queue("b", a30=FREE), queue("c", h100=4, a30=4)],
            pending=[
                job("a1", "a", pods(gpus=4)),
                job("b1", "b", pods(gpus=4, flavors="a30"), submitted_at=1),
            ],
        ),
        starts="a1 b1",
    ),
    Scenario(
        "a workload of two flavors may own one and borrow the other",
        "Kueue: flavorassigner_test, multiple specs, fits borrowing",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=2, a30=FREE), queue("b", a30=2)],
            pending=[job("w", "a", pods(2, name="x"), pods(2, flavors="a30", name="y"))],
        ),
        starts="w",
        flavors={"w": "a30 h100"},
    ),
    Scenario(
        "of accepted flavors the first that fits is taken",
        "Kueue: flavorassigner_test, Select first flavor which fits",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=4, a30=4)],
            pending=[job("w", "a", pods(2, flavors="a30 h100"))],
        ),
        starts="w",
        flavors={"w": "a30"},
    ),
    Scenario(
        "the next accepted flavor is taken where the quota of the first is used",
        "Kueue: scheduler_test, use second flavor when the first has no preemption candidates",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=2, a30=4)],
            holding=[runs("r", "a", "n1/0", "n1/1")],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        starts="w",
        flavors={"w": "a30"},
    ),
    Scenario(
        "a flavor of the project's own comes before one that is borrowed, whatever it prefers",
        "Kueue: flavorassigner_test, borrow try next flavor, found the second flavor",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=FREE, a30=1), queue("b", h100=4)],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        starts="w",
        flavors={"w": "a30"},
    ),
    Scenario(
        "the preferred flavor is borrowed where none is the project's own any more",
        "Kueue: flavorassigner_test, borrow try next flavor, found the first flavor",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=FREE, a30=Quota(1, borrow=None)), queue("b", h100=4, a30=3)],
            holding=[runs("r", "a", "n2/0", flavor="a30")],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        starts="w",
        flavors={"w": "h100"},
    ),
    Scenario(
        "the next flavor is borrowed where nothing of the first is left to borrow",
        "Kueue: scheduler_test, not enough resources to borrow, fallback to next flavor",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=FREE, a30=FREE), queue("b", h100=2, a30=2)],
            holding=[runs("r", "b", "n1/0", "n1/1")],
            pending=[job("w", "a", pods(2, flavors="h100 a30"))],
        ),
        starts="w",
        flavors={"w": "a30"},
    ),
    Scenario(
        "all pods of a set get one flavor, though two would hold them together",
        "Kueue: docs cluster_queue, one flavor for a resource of a pod set",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=2, a30=2)],
            pending=[job("w", "a", pods(2, flavors="h100 a30"))],
        ),
        waits={"w": Code.EXCEEDS_CAPACITY},
    ),
    Scenario(
        "unlike with Kueue's MayStopSearch, a flavor that is free comes before one to evict for",
        "Kueue: scheduler_test, admit to second flavor when first needs preemption, TryNextFlavor",
        snapshot(
            nodes=BOTH,
            queues=[queue("a", h100=4, a30=4)],
            holding=[runs("low", "a", *gpus("n1", 0, 4), priority=-1)],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        starts="w",
        flavors={"w": "a30"},
    ),
    Scenario(
        "the preferred flavor is evicted for where none is free",
        "Kueue: flavorassigner_test, first flavor where priority based preemption is possible",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1, a30=1)],
            holding=[
                runs("p", "a", "n1/0", priority=-1),
                runs("q", "a", "n2/0", flavor="a30", priority=-2),
            ],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        preempts={"w": "p"},
    ),
    Scenario(
        "where the preferred flavor has nobody to evict the next one is evicted for",
        "Kueue: flavorassigner_test, can only preempt flavors that match affinity",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1, a30=1)],
            holding=[runs("p", "a", "n1/0"), runs("q", "a", "n2/0", flavor="a30", priority=-2)],
            pending=[job("w", "a", pods(flavors="h100 a30"))],
        ),
        preempts={"w": "q"},
    ),
    Scenario(
        "who is over in one flavor gives nothing of another",
        "YuniKorn: preemption_test, TestTryPreemption_VictimQueue_With_OG_And_UG_ResTypes",
        snapshot(
            nodes=[node("n1", gpus=2), node("n2", gpus=2, model=A30)],
            queues=[queue("a", h100=1, a30=2), queue("b", h100=2, a30=FREE)],
            holding=[
                *singles("b1 b2", "b", gpus("n1", 0, 2)),
                runs("b3", "b", "n2/0", "n2/1", flavor="a30"),
            ],
            pending=[job("w", "a")],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a project takes back its own of one flavor while it borrows another",
        "Kueue: preemption_fair_test, nominal first: preempt despite high aggregate DRS",
        snapshot(
            nodes=[node("n1", gpus=2), node("n2", gpus=4, model=A30)],
            queues=[
                queue("a", h100=1, a30=FREE),
                queue("b", h100=Quota(1, borrow=None)),
                queue("c", a30=4),
            ],
            holding=[
                runs("a1", "a", *gpus("n2", 0, 4), flavor="a30"),
                *singles("b1 b2", "b", gpus("n1", 0, 2)),
            ],
            pending=[job("w", "a")],
        ),
        reclaims={"w": "b1"},
    ),
    Scenario(
        "both flavors of a workload are taken back for it",
        "Kueue: preemption_hierarchical_test, hierarchical preemption with multiple resources",
        snapshot(
            nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
            queues=[queue("a", h100=1, a30=1), queue("b", h100=FREE), queue("c", a30=FREE)],
            holding=[runs("b1", "b", "n1/0"), runs("c1", "c", "n2/0", flavor="a30")],
            pending=[job("w", "a", pods(name="x"), pods(flavors="a30", name="y"))],
        ),
        reclaims={"w": "b1 c1"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_flavor_is_chosen_so_that(case: Scenario) -> None:
    check(case)
