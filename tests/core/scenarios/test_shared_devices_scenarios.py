"""Shares of a device: which device, beside whom, and who gives them back."""

from dataclasses import replace

import pytest

from scheduler.core.reasons import ReasonCode as Code
from scheduler.core.snapshot import HoldingView, Isolation, NodeView, PodSetView
from tests.core.build import A30, T4, Quota, job, node, pods, queue, runs, snapshot
from tests.core.scenarios.scenario import FREE, Scenario, check

ALL = [queue("a", t4=8, t4share=8, t4slot=8)]
PAIR = node("n1", gpus=2, model=T4, shares=Isolation.MEMORY)
MIXED = replace(PAIR, devices=(PAIR.devices[0], replace(PAIR.devices[1], shares=None)))
WHOLE = pods(flavors="t4")
TWO_MODELS = [
    node("n1", gpus=1, model=T4, shares=Isolation.MEMORY),
    node("n2", gpus=1, model=A30, shares=Isolation.MEMORY),
]
BOTH = [queue("a", t4share=8, a30share=8, t4slot=8, _1g=8)]


def t4(*gpus: int, shares: Isolation | None = Isolation.MEMORY) -> list[NodeView]:
    return [node(f"n{i}", gpus=count, model=T4, shares=shares) for i, count in enumerate(gpus, 1)]


def part(share: float) -> PodSetView:
    return pods(share=share, flavors="t4share")


def of_memory(mib: int, flavors: str, *, least: Isolation = Isolation.NONE) -> PodSetView:
    return replace(pods(flavors=flavors), gpu_memory_mib=mib, least_isolation=least)


def holds(
    name: str, on: str, first: int, beyond: int, *, of: str = "a", priority: int = 0
) -> HoldingView:
    amount = (beyond - first) / 1000
    return runs(
        name, of, on, flavor="t4share", span=(first, beyond), amount=amount, priority=priority
    )


CASES = (
    Scenario(
        "a share joins a device in use, and leaves an empty one whole",
        "KAI: allocateFractionalGpu_test, gpuSharingOrder, the node with already running job",
        snapshot(
            nodes=t4(1, 1),
            queues=ALL,
            holding=[holds("r", "n2/0", 0, 500)],
            pending=[job("w", "a", part(0.5)), job("x", "a", WHOLE, submitted_at=1)],
        ),
        starts="w x",
        on={"w": "n2", "x": "n1"},
    ),
    Scenario(
        "a share goes beside whole work to another device",
        "KAI: allocateFractionalGpu_test, 1 whole gpu job running, 1 pending shared - allocate",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[runs("r", "a", "n1/0", flavor="t4")],
            pending=[job("w", "a", part(0.5))],
        ),
        starts="w",
        spans={"w": [("n1/1", 0, 500)]},
    ),
    Scenario(
        "a share that does not fit beside another opens a device",
        "KAI: allocateFractionalGpu_test, 1 shared gpu job running - allocate to new gpu",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[holds("r", "n1/0", 0, 600)],
            pending=[job("w", "a", part(0.5))],
        ),
        starts="w",
        spans={"w": [("n1/1", 0, 500)]},
    ),
    Scenario(
        "as many shares start as devices hold, and the next waits",
        "KAI: allocateFractionalGpu_test, 4 pending interactive shared gpus, allocate 3",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[holds("r", "n1/0", 0, 500)],
            pending=[job(f"w{i}", "a", part(0.5), submitted_at=i) for i in range(4)],
        ),
        starts="w0 w1 w2",
        waits={"w3": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "two halves that are free on two devices hold no larger share",
        "KAI: consolidationFractional_test, can't consolidate fractional GPUs",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 500), holds("q", "n1/1", 0, 500)],
            pending=[job("w", "a", part(0.6))],
        ),
        waits={"w": Code.NO_FIT},
        numbers={"w": {"asked_milli": 600, "free_milli": 1000, "largest_free_milli": 500}},
    ),
    Scenario(
        "unlike in KAI, shares are not moved together for a whole device",
        "KAI: consolidationFractional_test, consolidate and insert a whole train job",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 500), holds("q", "n1/1", 0, 500)],
            pending=[job("w", "a", WHOLE)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
        numbers={"w": {"free_milli": 0}},
    ),
    Scenario(
        "a device of which a part is held is not given whole",
        "KAI: reclaimFractional_test, whole gpu job and a fractional one on one node",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 10)],
            pending=[job("w", "a", WHOLE)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "a share of guarded memory is not put where memory is not guarded",
        "Volcano: docs/design/device-sharing, sharing modes of a device",
        snapshot(
            nodes=t4(1, shares=Isolation.NONE),
            queues=ALL,
            pending=[job("w", "a", part(0.5)), job("x", "a", pods(share=0.5, flavors="t4slot"))],
        ),
        starts="x",
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "a device that may not be shared is given whole alone",
        "Volcano: gpuexclusive_test, devices that are not shared",
        snapshot(
            nodes=t4(1, shares=None),
            queues=ALL,
            pending=[job("w", "a", part(0.5)), job("x", "a", WHOLE, submitted_at=1)],
        ),
        starts="x",
        waits={"w": Code.NO_MATCHING_FLAVOR},
    ),
    Scenario(
        "unlike in KAI, who borrows shares gives none for a whole device, which is another flavor",
        "KAI: reclaimFractional_test, reclaim fractional train by whole GPU job",
        snapshot(
            nodes=t4(1),
            queues=[queue("a", t4=1), queue("b", t4share=FREE), queue("c", t4share=1)],
            holding=[holds("b1", "n1/0", 0, 500, of="b"), holds("b2", "n1/0", 500, 1000, of="b")],
            pending=[job("w", "a", WHOLE)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "of several shares only those go that a share needs",
        "KAI: reclaimFractional_test, reclaim only part of fractional jobs",
        snapshot(
            nodes=t4(1),
            queues=[queue("a", t4share=1), queue("b", t4share=FREE)],
            holding=[
                holds("b1", "n1/0", 0, 300, of="b"),
                holds("b2", "n1/0", 300, 600, of="b", priority=1),
                holds("b3", "n1/0", 600, 1000, of="b", priority=2),
            ],
            pending=[job("w", "a", part(0.5))],
        ),
        reclaims={"w": "b1 b2"},
    ),
    Scenario(
        "who would be over quota with its share takes nothing back",
        "KAI: reclaimFractional_test, fractional GPU job will go over quota - don't reclaim",
        snapshot(
            nodes=t4(1),
            queues=[
                queue("a", t4share=Quota(0.5, borrow=None)),
                queue("b", t4share=Quota(0.5, None)),
            ],
            holding=[
                holds("a1", "n1/0", 0, 300),
                holds("b1", "n1/0", 300, 600, of="b"),
                holds("b2", "n1/0", 600, 1000, of="b"),
            ],
            pending=[job("w", "a", part(0.3))],
        ),
        waits={"w": Code.COHORT_USED},
    ),
    Scenario(
        "a share evicts a share of lower priority",
        "KAI: preemptFractional_test, Preempt fractional train by fractional interactive GPU job",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            holding=[
                holds("low", "n1/0", 0, 500, priority=-1),
                holds("high", "n1/0", 500, 1000, priority=9),
            ],
            pending=[job("w", "a", part(0.4))],
        ),
        preempts={"w": "low"},
    ),
    Scenario(
        "whole work evicts all shares of one device and none of another",
        "KAI: preemptFractional_test, Preempt fractional train by whole GPU job",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[
                holds("p", "n1/0", 0, 500),
                holds("q", "n1/0", 500, 1000),
                holds("r", "n1/1", 0, 500, priority=9),
            ],
            pending=[job("w", "a", WHOLE, priority=1)],
        ),
        preempts={"w": "p q"},
    ),
    Scenario(
        "shares are borrowed in thousandths",
        "KAI: allocateFractionalGpu_test, Allow allocation of fractional training when over quota",
        snapshot(
            nodes=t4(2),
            queues=[queue("a", t4share=Quota(0.5, borrow=0.25)), queue("b", t4share=1)],
            pending=[
                job("w1", "a", part(0.5)),
                job("w2", "a", part(0.3), submitted_at=1),
                job("w3", "a", part(0.25), submitted_at=2),
            ],
        ),
        starts="w1 w3",
        waits={"w2": Code.QUOTA_USED},
        numbers={"w2": {"asked_milli": 300, "used_milli": 750, "borrowable_milli": 250}},
    ),
    Scenario(
        "a gap that nobody can use is filled by the share that it just holds",
        "KAI: allocateFractionalGpu_test, gpuSharingOrder, fullest device first",
        snapshot(
            nodes=t4(2),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 400), holds("q", "n1/1", 0, 700)],
            pending=[job("w", "a", part(0.3)), job("x", "a", part(0.6), submitted_at=1)],
        ),
        starts="w x",
        spans={"w": [("n1/1", 700, 1000)], "x": [("n1/0", 400, 1000)]},
    ),
    Scenario(
        "a device on which two shares overlap takes nothing new, whatever looks free",
        "Armada: scheduling_algo_test, overallocated node",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 300), holds("q", "n1/0", 100, 400)],
            pending=[job("w", "a", part(0.5), priority=-1)],
        ),
        waits={"w": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "whole work goes to the device that may not be shared",
        "Volcano: docs/design/device-sharing, devices of a node",
        snapshot(
            nodes=[MIXED],
            queues=ALL,
            pending=[job("w", "a", WHOLE)],
        ),
        starts="w",
        spans={"w": [("n1/1", 0, 1000)]},
    ),
    Scenario(
        "memory of a device is the part of it that has so much, of each model another",
        "Run:ai: GPU fractions, request by GPU memory",
        snapshot(
            nodes=TWO_MODELS,
            queues=BOTH,
            pending=[
                job("w", "a", of_memory(6_144, "t4share")),
                job("x", "a", of_memory(6_144, "a30share"), submitted_at=1),
            ],
        ),
        starts="w x",
        spans={"w": [("n1/0", 0, 400)], "x": [("n2/0", 0, 250)]},
    ),
    Scenario(
        "a part that does not come out even is rounded up, so that the memory is there",
        "KAI: docs/gpu-sharing, gpu-memory annotation",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            pending=[job("w", "a", of_memory(5_120, "t4share"))],
        ),
        starts="w",
        spans={"w": [("n1/0", 0, 334)]},
    ),
    Scenario(
        "shares by memory and by part fill one device together",
        "KAI: docs/gpu-sharing, gpu-memory annotation",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            holding=[holds("p", "n1/0", 0, 500)],
            pending=[
                job("w", "a", of_memory(7_680, "t4share")),
                job("x", "a", of_memory(1, "t4share"), submitted_at=1),
            ],
        ),
        starts="w",
        spans={"w": [("n1/0", 500, 1000)]},
        waits={"x": Code.NO_FREE_CAPACITY},
    ),
    Scenario(
        "of several flavors one whose devices are too small is passed over",
        "HAMi: user guide, allocate device memory",
        snapshot(
            nodes=TWO_MODELS,
            queues=BOTH,
            pending=[
                job("w", "a", of_memory(20_000, "t4share a30share")),
                job("x", "a", of_memory(25_000, "t4share a30share"), submitted_at=1),
            ],
        ),
        starts="w",
        spans={"w": [("n2/0", 0, 814)]},
        waits={"x": Code.EXCEEDS_CAPACITY},
        numbers={"x": {"gpu_memory_mib": 25_000, "largest_gpu_memory_mib": 24_576}},
    ),
    Scenario(
        "memory may be asked of slices beside shares: a slice is given whole",
        "HAMi: user guide, dynamic MIG",
        snapshot(
            nodes=[node("n1", gpus=1, dynamic=True)],
            queues=BOTH,
            pending=[job("w", "a", of_memory(8_000, "1g t4share"))],
        ),
        starts="w",
        flavors={"w": "1g"},
    ),
    Scenario(
        "unlike in KAI, work of a project that accepts no less than memory limits gets those",
        "KAI: issue 274, equal time slices whatever fraction was asked",
        snapshot(
            nodes=[
                node("n1", gpus=1, model=T4, shares=Isolation.NONE),
                node("n2", gpus=1, model=T4, shares=Isolation.MEMORY),
            ],
            queues=[replace(ALL[0], least_isolation=Isolation.MEMORY)],
            pending=[
                job("w", "a", pods(share=0.5, flavors="t4slot t4share")),
                job("x", "a", pods(share=0.5, flavors="t4slot"), submitted_at=1),
            ],
        ),
        starts="w",
        flavors={"w": "t4share"},
        waits={"x": Code.ISOLATION},
        numbers={"x": {"by": "project", "flavor": "t4slot", "given": "none", "least": "memory"}},
    ),
    Scenario(
        "unlike with time-slicing alone, who asks for hardware between neighbours gets no share",
        "GPU Operator: time-slicing, no memory or fault isolation between replicas",
        snapshot(
            nodes=t4(1),
            queues=ALL,
            pending=[job("w", "a", of_memory(5_120, "t4share", least=Isolation.HARDWARE))],
        ),
        waits={"w": Code.ISOLATION},
        numbers={"w": {"by": "request", "given": "memory", "least": "hardware"}},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shares_are_given_so_that(case: Scenario) -> None:
    check(case)
