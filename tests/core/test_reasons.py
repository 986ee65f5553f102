"""A reason names what really stands in the way: an outage, the resource that binds, others."""

from dataclasses import replace

import pytest

from scheduler.core.admitting.outage import Outage
from scheduler.core.bounds.limits import never_admissible
from scheduler.core.cycle import plan
from scheduler.core.fleet.draft import Draft
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.core.request import Requests
from scheduler.core.snapshot import ClusterView, PodSetView
from scheduler.core.units import PodSetId, ProjectId
from tests.core.build import (
    A30,
    H100,
    Outcome,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

ONE = [node("n1", gpus=4, cores=8, memory_gib=16)]
FULL = [runs("r", "b", "n1/0", "n1/1", "n1/2", preemptible=False)]
CODE = ReasonCode


def held_cluster(of: ClusterView) -> ClusterView:
    return replace(of, usable=False, held=True)


def held_pool(of: ClusterView) -> ClusterView:
    nodes = (
        replace(n, devices=tuple(replace(d, usable=False) for d in n.devices)) for n in of.nodes
    )
    return replace(of, nodes=tuple(nodes), held_models=(H100,))


def test_it_waits_for_a_node_that_is_not_ready_when_it_would_fit_there() -> None:
    nodes = [*ONE, node("n0", gpus=4, usable=False)]
    queues = [queue("a", h100=16), queue("b", h100=8)]
    pending = [job(name, "a", pods(gpus=4)) for name in ("w", "x")]
    made = decide(snapshot(nodes=nodes, queues=queues, holding=FULL, pending=pending))
    assert made.reason("w") is CODE.CLUSTER_UNAVAILABLE
    expected = {"asked_milli": 4000, "clusters_count": 0, "free_milli": 1000, "nodes_count": 1}
    assert expected.items() <= made.numbers("w").items()
    assert describe(made.hold("w").reason) == (
        "4 h100 asked, 1 free in one cluster that takes new work. It would fit where none is"
        " taken now: 1 node not ready."
    )


def test_it_waits_for_a_degraded_cluster_that_alone_has_its_flavor() -> None:
    """Others are accepted and well; while the flavor there is in use, the outage is no reason."""
    clusters = [
        cluster("c1", ONE),
        cluster("c2", [node("n2", gpus=1, model=A30)], usable=False),
    ]
    of = snapshot(
        clusters=clusters, queues=[queue("a", a30=8)], pending=[job("w", "a", pods(flavors="a30"))]
    )
    made = decide(of)
    assert made.reason("w") is CODE.CLUSTER_UNAVAILABLE
    expected = {"clusters_count": 1, "flavor": "a30", "free_milli": 0, "nodes_count": 0}
    assert expected.items() <= made.numbers("w").items()
    assert "1 cluster lost, degraded or just back" in describe(made.hold("w").reason)
    used = runs("r", "a", "n2/0", flavor="a30", in_cluster="c2", preemptible=False)
    assert decide(replace(of, holding=(used,))).reason("w") is CODE.NO_FREE_CAPACITY


def test_it_waits_for_a_held_pool_or_cluster_where_it_would_fit_and_is_told_which() -> None:
    queues, waits = [queue("a", h100=16), queue("b", h100=8)], [job("w", "a", pods(gpus=4))]
    busy, free = cluster("c1", ONE), cluster("c2", [node("n2", gpus=4, usable=True)])
    for held, name in (
        (held_pool(free), f"pool {H100} in c2"),
        (held_cluster(free), "cluster c2"),
    ):
        of = snapshot(clusters=[busy, held], queues=queues, holding=FULL, pending=waits)
        made = decide(of)
        assert made.reason("w") is CODE.HARDWARE_HELD
        assert made.numbers("w")["held"] == name
        assert describe(made.hold("w").reason) == (
            "4 h100 asked, 1 free in one cluster that takes new work. It would fit where nothing"
            f" new starts until it is opened again: {name}."
        )
        assert violations(of, plan(of, Policy())) == ()
    of = snapshot(clusters=[busy, free], queues=queues, holding=FULL, pending=waits)
    assert decide(of).started() == ["w"]


def test_what_runs_in_a_held_pool_keeps_what_it_holds() -> None:
    held = held_pool(cluster("c2", [node("n2", gpus=4)]))
    runs_there = runs("r", "a", "n2/0", in_cluster="c2", preemptible=False)
    of = snapshot(
        clusters=[held],
        queues=[queue("a", h100=4)],
        holding=[runs_there],
        pending=[job("w", "a", pods(gpus=4))],
    )
    assert decide(of).reason("w") in {CODE.QUOTA_USED, CODE.COHORT_USED}
    wide = replace(of, queues=(queue("a", h100=8),))
    assert decide(wide).reason("w") is CODE.NO_FREE_CAPACITY
    assert never_admissible(of, of.pending[0]) is None


def test_held_clusters_are_named_where_no_other_is_accepted() -> None:
    clusters = [held_cluster(cluster("c1", ONE)), cluster("c2", [node("n2")], usable=False)]
    made = decide(
        snapshot(clusters=clusters, queues=[queue("a", h100=8)], pending=[job("w", "a")])
    )
    assert made.reason("w") is CODE.HARDWARE_HELD
    assert describe(made.hold("w").reason) == (
        "Held, so that nothing new starts there until it is opened again: cluster c1. No other"
        " cluster that is accepted takes new work."
    )


def test_what_starts_in_the_same_plan_is_not_counted_as_free_beside_an_outage() -> None:
    nodes = [*ONE, node("n0", gpus=1, usable=False)]
    pending = [job("first", "a", pods(gpus=4)), job("w", "a", pods(4), submitted_at=1)]
    made = decide(snapshot(nodes=nodes, queues=[queue("a", h100=8)], pending=pending))
    assert made.started() == ["first"]
    assert made.reason("w") is CODE.NO_FREE_CAPACITY


@pytest.mark.parametrize("used", [8, 4])
def test_it_is_told_of_all_that_is_out_and_held_and_of_no_room_that_is_kept(used: int) -> None:
    """In c1 a node is out beside one that is kept for the first; c2 is lost; in c3 a pool is held
    and in use."""
    here = cluster("c1", [node("n1", gpus=4), node("n2", gpus=4, usable=False)])
    lost = cluster("c2", [node("n3", gpus=8)], usable=False)
    pool = held_pool(cluster("c3", [node("n4", gpus=8)]))
    devices = [f"n4/{i}" for i in range(used)]
    asks = {
        "first": job("first", "a", pods(gpus=4), clusters="c1"),
        "small": job("small", "a", pods(gpus=2), clusters="c1", submitted_at=1),
        "node": job("node", "a", pods(gpus=4, cores=2), clusters="c1", submitted_at=2),
        "gang": job("gang", "a", pods(2, gpus=3), clusters="c1", submitted_at=3),
        "wide": job("wide", "a", pods(gpus=4, cores=3), submitted_at=4),
    }
    of = snapshot(
        clusters=[here, lost, pool],
        queues=[queue("a", h100=64), queue("b", h100=16)],
        pending=asks.values(),
        holding=[
            runs("r", "b", "n1/0", in_cluster="c1", preemptible=False),
            runs("s", "b", *devices, in_cluster="c3", preemptible=False),
        ],
    )
    made = Outcome(plan(of, Policy(guard_s=0, most_kept=1, preemption=False)))
    expected = {
        "first": CODE.ROOM_KEPT,
        "small": CODE.KEPT_FOR_OTHERS,
        "node": CODE.CLUSTER_UNAVAILABLE,
        "gang": CODE.NO_FREE_CAPACITY,  # it would take the room that is kept, beside the node
        "wide": CODE.CLUSTER_UNAVAILABLE if used == 8 else CODE.HARDWARE_HELD,
    }
    assert {name: made.reason(name) for name in asks} == expected
    assert {"clusters_count": 0, "nodes_count": 1}.items() <= made.numbers("node").items()
    outages = (
        {"clusters_count": 1, "nodes_count": 1} if used == 8 else {"held": f"pool {H100} in c3"}
    )
    assert outages.items() <= made.numbers("wide").items()


@pytest.mark.parametrize(
    ("asked", "numbers", "sentence"),
    [
        pytest.param(
            pods(cores=32),
            {"binds": "cores", "pod_cpu_milli": 32000, "largest_cpu_milli": 16000},
            "Larger than the hardware in cores: 1 pod of 32 cores asked; even empty, one node"
            " with h100 has 16 cores.",
            id="cores",
        ),
        pytest.param(
            pods(memory_gib=96),
            {"binds": "memory", "pod_memory_mib": 96 * 1024, "largest_memory_mib": 64 * 1024},
            "Larger than the hardware in memory: 1 pod of 96 GiB asked; even empty, one node"
            " with h100 has 64 GiB.",
            id="memory",
        ),
        pytest.param(
            pods(cores=32, memory_gib=96),
            {"binds": "cores and memory"},
            "Larger than the hardware in cores and memory: 1 pod of 32 cores and 96 GiB asked;"
            " even empty, one node with h100 has 16 cores and 64 GiB.",
            id="both",
        ),
        pytest.param(
            pods(2, cores=12),
            {"binds": "cores", "pods_count": 2, "pod_cpu_milli": 12000},
            "Larger than the hardware in cores: 2 pods of up to 12 cores asked; even empty, one"
            " node with h100 has 16 cores.",
            id="cores of a gang",
        ),
    ],
)
def test_what_is_larger_than_the_hardware_says_in_what(
    asked: PodSetView, numbers: dict[str, int | str], sentence: str
) -> None:
    """Of the nodes that have the devices: one without them is larger and does not count."""
    nodes = [node("n1", gpus=4, cores=16, memory_gib=64), node("n2", cores=128, memory_gib=999)]
    of = snapshot(nodes=nodes, queues=[queue("a", h100=8)], pending=[job("w", "a", asked)])
    made = decide(of)
    assert made.reason("w") is CODE.EXCEEDS_CAPACITY
    assert numbers.items() <= made.numbers("w").items()
    assert describe(made.hold("w").reason) == sentence
    assert never_admissible(of, job("w", "a", asked)) == made.hold("w").reason


def test_the_pod_set_that_binds_is_told() -> None:
    nodes = [node("n1", gpus=4, cores=16), node("n2", gpus=4, model=A30, cores=8)]
    both = pods(gpus=4, cores=4), pods(flavors="a30", cores=12, name="b")
    of = snapshot(nodes=nodes, queues=[queue("a", h100=8, a30=8)], pending=[job("w", "a", *both)])
    expected = {
        "asked_milli": 1000,
        "binds": "cores",
        "flavor": "a30",
        "free_milli": 4000,
        "largest_cpu_milli": 8000,
        "pod_cpu_milli": 12000,
    }
    assert expected.items() <= decide(of).numbers("w").items()


def test_devices_that_are_free_without_cores_or_memory_beside_them_say_so() -> None:
    busy = runs("r", "a", "n1", flavor="cpu", cores=7, preemptible=False)
    waiting = job("w", "a", pods(gpus=1, cores=2))
    of = snapshot(nodes=ONE, queues=[queue("a", h100=4, cpu=8)], holding=[busy], pending=[waiting])
    made = decide(of)
    assert (made.reason("w"), made.numbers("w")["binds"]) == (CODE.NO_FIT, "cores")
    assert describe(made.hold("w").reason) == (
        "1 h100 asked and 4 free, but not with enough cores: 1 pod of 2 cores asked; the most"
        " free on one node that has the h100 is 1 cores."
    )


def test_where_devices_bind_nothing_else_is_blamed() -> None:
    nodes = [node("n1", gpus=1), node("n2", gpus=1)]
    of = snapshot(
        nodes=nodes, queues=[queue("a", h100=8)], pending=[job("w", "a", pods(gpus=2, cores=99))]
    )
    made = decide(of)
    assert made.reason("w") is CODE.EXCEEDS_CAPACITY
    assert "binds" not in made.numbers("w")


def test_what_is_behind_others_is_not_promised_the_next_cycle() -> None:
    pending = [job(f"w{i}", "a", submitted_at=i) for i in range(9)]
    made = decide(snapshot(nodes=ONE, queues=[queue("a", h100=8)], pending=pending), max_admits=1)
    told = describe(made.hold("w8").reason)
    assert told == "Other workloads start first (1 in this cycle)."


def test_an_outage_is_asked_about_in_the_draft_as_it_has_become() -> None:
    nodes = [*ONE, node("n0", gpus=4, usable=False)]
    of = snapshot(
        nodes=nodes, queues=[queue("a", h100=8)], pending=[job("w", "a", pods(2, gpus=2))]
    )
    draft, pending = Draft(snapshot=of, holding=()), of.pending[0]
    outage = Outage(of, draft)
    request = Requests(flavors=draft.flavors, book=draft.book).of(pending)

    def told() -> Reason | None:
        return outage.why(pending=pending, request=request, option=request.options[0])

    assert told() is None  # it fits
    for holder in runs("r", "a", "n1/0", "n1/1", "n1/2").placements:
        draft.add(project=ProjectId("a"), holder=holder)
    reason = told()
    assert reason is not None
    assert reason.code is CODE.CLUSTER_UNAVAILABLE
    for holder in runs("s", "a", "n0/0", "n0/1", "n0/2").placements:
        draft.add(project=ProjectId("a"), holder=holder)
    assert told() is None


def test_slices_are_cut_beside_an_outage_as_they_would_be_without_it() -> None:
    """What starts with all devices would start were they back, whichever spans that takes."""
    ones, twos = pods(1, flavors="3g", cores=4), pods(4, flavors="2g", cores=3)
    waits = job("w", "a", replace(ones, id=PodSetId("s0")), replace(twos, id=PodSetId("s1")))

    def made(*, usable: bool) -> Plan:
        of = snapshot(
            nodes=[
                node("n0", gpus=1, dynamic=True),
                node("n1", gpus=1, dynamic=True, usable=usable),
            ],
            queues=[queue("a", _2g=99, _3g=99)],
            holding=[runs("r", "a", "n1/0", flavor="3g", span=(4, 8))],
            pending=[waits],
        )
        return plan(of, Policy())

    assert [admit.workload for admit in made(usable=True).admits] == [waits.id]
    assert made(usable=False).reasons()[waits.id].code is CODE.CLUSTER_UNAVAILABLE
