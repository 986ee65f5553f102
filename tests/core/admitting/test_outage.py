"""What is out or held would take what nothing else takes: as much is found where it is alone."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from scheduler.core.admitting.outage import Outage
from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import ClusterView, HoldingView, NodeView, PendingView, Snapshot
from tests.core.build import H100, cluster, cpu_pods, job, node, pods, queue, runs, snapshot

SEEDS = range(400)
TOLD = {ReasonCode.CLUSTER_UNAVAILABLE, ReasonCode.HARDWARE_HELD}


def outages(seed: int) -> Snapshot:
    """Two clusters that are nearly full, and much of them out of service or held."""
    pick = Random(seed)
    nodes = [
        node(f"n{i}", gpus=3, cores=pick.choice([4, 64]), at=f"r{i % 3}",
             usable=pick.random() < 0.6)
        for i in range(8)
    ]  # fmt: skip
    holding: list[HoldingView] = []
    for i in range(8):
        for device in range(3):
            if pick.random() < 0.6:
                where = f"n{i}/{device}"
                in_cluster = "c1" if i < 4 else "c2"
                holding.append(runs(f"r-{i}-{device}", "b", where, in_cluster=in_cluster))
    made = snapshot(
        clusters=[_cluster(pick, "c1", nodes[:4]), _cluster(pick, "c2", nodes[4:])],
        queues=[queue("a", h100=99, cpu=99), queue("b", h100=99)],
        pending=[_asks(pick, f"w{i}") for i in range(6)],
        holding=holding,
    )
    return replace(made, levels=("rack",))


def _cluster(pick: Random, name: str, nodes: list[NodeView]) -> ClusterView:
    made = cluster(name, nodes)
    match pick.choice(["well", "well", "lost", "held", "pool"]):
        case "lost":
            return replace(made, usable=False)
        case "held":
            return replace(made, usable=False, held=True)
        case "pool":
            sick = [
                replace(n, devices=tuple(replace(d, usable=False) for d in n.devices))
                for n in nodes
            ]
            return replace(made, nodes=tuple(sick), held_models=(H100,))
    return made


def _asks(pick: Random, name: str) -> PendingView:
    sets = [
        pods(pick.choice([1, 1, 2, 3]), gpus=pick.choice([1, 2, 3]), cores=pick.choice([1, 4]))
    ]
    if pick.random() < 0.3:
        sets.append(pick.choice([cpu_pods(name="lead"), pods(name="lead")]))
    return job(name, "a", *sets, within=pick.choice(["", "", "rack"]))


def test_alone_it_says_what_it_says_beside_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told, alone = Counter[ReasonCode](), Counter[bool]()
    asked = Outage._takes_none

    def counted(self: Outage, *args: object) -> bool:
        answer = asked(self, *args)  # type: ignore[arg-type]
        alone[answer] += 1
        return answer

    for seed in SEEDS:
        of = outages(seed)
        with monkeypatch.context() as patched:
            patched.setattr(Outage, "_takes_none", counted)
            quick = plan(of, Policy())
        with monkeypatch.context() as patched:
            patched.setattr(Outage, "_takes_none", lambda *_: False)
            assert quick == plan(of, Policy()), seed
        told.update(reason.code for reason in quick.reasons().values())
    assert all(told[code] > 50 for code in TOLD)
    assert min(alone[True], alone[False]) > 50
