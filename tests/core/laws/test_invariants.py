"""The check itself: a lawful plan passes, and each law that is broken is told."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Admit, Hold, Place, Plan, Preempt
from scheduler.core.reasons import PreemptRule, Reason, ReasonCode
from scheduler.core.snapshot import HoldingView, Isolation, NodeView, PodSetView
from scheduler.core.units import (
    WHOLE_DEVICE,
    ClusterId,
    DeviceId,
    FlavorId,
    NodeId,
    PodSetId,
    Span,
    WorkloadId,
)
from tests.core.build import (
    AT,
    T4,
    Quota,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

OF = snapshot(
    clusters=[
        cluster("c1", [node("n1", gpus=4, cores=8), node("n2", gpus=1, dynamic=True)]),
        cluster("c2", [node("n3", gpus=4)], usable=False),
    ],
    queues=[queue("a", h100=Quota(2, borrow=1), _3g=4), queue("b", h100=2)],
    pending=[
        job("w", "a", pods(2, gpus=1)),
        job("m", "a", pods(gpus=1, flavors="3g"), submitted_at=1),
        job("held", "a", pods(gpus=2), submitted_at=2),
        job("late", "b", not_before=AT + 9),
    ],
    holding=[runs("r", "b", "n1/3"), runs("s", "b", "n1/2", preemptible=False)],
)
GOOD = decide(OF, preemption=False).plan
W, M = GOOD.admits


def _with(admit: Admit, **changes: object) -> Plan:
    changed = replace(admit, places=tuple(replace(p, **changes) for p in admit.places))  # type: ignore[arg-type]
    return replace(GOOD, admits=tuple(changed if a is admit else a for a in GOOD.admits))


def _places(admit: Admit, change: Callable[[tuple[Place, ...]], tuple[Place, ...]]) -> Plan:
    changed = replace(admit, places=change(admit.places))
    return replace(GOOD, admits=tuple(changed if a is admit else a for a in GOOD.admits))


def _evict(victim: str, by: str, rule: PreemptRule) -> Plan:
    waits = Reason(ReasonCode.WAITING_FOR_PREEMPTION)
    holds = tuple(replace(h, reason=waits) if by in h.workloads else h for h in GOOD.holds)
    preempts = (Preempt(WorkloadId(victim), WorkloadId(by), rule),)
    return replace(GOOD, holds=holds, preempts=preempts)


def _first(place: Place, **changes: object) -> Callable[[tuple[Place, ...]], tuple[Place, ...]]:
    return lambda places: (replace(place, **changes), *places[1:])  # type: ignore[arg-type]


FIRST, SECOND = W.places
SLICE = M.places[0]
N3 = NodeId("n3")


def test_a_lawful_plan_breaks_nothing() -> None:
    assert violations(OF, GOOD) == ()


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        pytest.param(replace(GOOD, holds=()), "is not decided", id="a workload left out"),
        pytest.param(
            replace(GOOD, holds=(*GOOD.holds, Hold((W.workload,), Reason(ReasonCode.NO_FIT)))),
            "decided 2 times",
            id="a workload decided twice",
        ),
        pytest.param(
            replace(GOOD, admits=(*GOOD.admits, Admit(WorkloadId("ghost"), ClusterId("c1"), ()))),
            "ghost is decided and not pending",
            id="an unknown workload",
        ),
        pytest.param(
            _places(W, lambda places: places[:1]), "starts 1 pods", id="a part of a gang"
        ),
        pytest.param(_places(W, lambda places: ()), "ranks", id="no pods at all"),
        pytest.param(_places(W, lambda places: places[::-1]), "ranks", id="ranks out of order"),
        pytest.param(
            _places(W, _first(FIRST, pod_set=PodSetId("other"))),
            "unknown pod sets",
            id="an unknown pod set",
        ),
        pytest.param(
            _places(W, _first(FIRST, flavor=FlavorId("a30"))), "several flavors", id="two flavors"
        ),
        pytest.param(
            _with(W, flavor=FlavorId("nothing")), "unknown flavor", id="an unknown flavor"
        ),
        pytest.param(
            _with(W, cpu_milli=1), "does not get what it asks for", id="fewer cores than asked"
        ),
        pytest.param(
            _places(W, _first(FIRST, spans=SECOND.spans)), "overlap", id="a device twice"
        ),
        pytest.param(
            _places(W, _first(FIRST, spans=((DeviceId("n1/3"), WHOLE_DEVICE),))),
            "overlap",
            id="a device that is held",
        ),
        pytest.param(
            _places(W, _first(FIRST, spans=((DeviceId("n1/0"), Span(0, 500)),))),
            "illegal span",
            id="half a device as a whole",
        ),
        pytest.param(
            _with(M, spans=((DeviceId("n2/0"), Span(2, 6)),)),
            "illegal span",
            id="a slice at an illegal start",
        ),
        pytest.param(
            _with(M, spans=((DeviceId("n1/0"), Span(4, 8)),)),
            "illegal span",
            id="a slice of a whole device",
        ),
        pytest.param(
            _with(M, spans=(*SLICE.spans, (DeviceId("n2/0"), Span(0, 4)))),
            "other spans than it is charged for",
            id="more slices than charged",
        ),
        pytest.param(
            _with(W, spans=((DeviceId("n9/9"), WHOLE_DEVICE),)),
            "takes nothing new",
            id="an unknown device",
        ),
        pytest.param(
            replace(GOOD, admits=(replace(W, cluster=ClusterId("c2")), M)),
            "takes nothing new",
            id="a cluster that is not usable",
        ),
        pytest.param(
            _places(W, _first(FIRST, node=N3)),
            "outside of cluster",
            id="another cluster",
        ),
    ],
)
def test_it_tells(plan: Plan, told: str) -> None:
    assert any(told in sentence for sentence in violations(OF, plan))


@pytest.mark.parametrize(
    ("victim", "by", "rule", "told"),
    [
        ("s", "held", PreemptRule.RECLAIM, "may not be evicted"),
        ("r", "held", PreemptRule.PRIORITY, "not of lower priority"),
        ("r", "late", PreemptRule.RECLAIM, "by its own project"),
        ("r", "held", PreemptRule.RECLAIM, "below what is guaranteed to project b"),
        ("w", "held", PreemptRule.PRIORITY, "does not wait"),
        ("r", "w", PreemptRule.RECLAIM, "does not wait"),
    ],
)
def test_it_tells_of_an_unlawful_eviction(
    victim: str, by: str, rule: PreemptRule, told: str
) -> None:
    found = violations(OF, _evict(victim, by, rule))
    assert any(told in sentence for sentence in found), found


def test_it_tells_of_an_eviction_before_the_least_run_time() -> None:
    a, b = OF.queues
    of = replace(OF, queues=(a, replace(b, min_run_time_s=9)))
    found = violations(of, _evict("r", "held", PreemptRule.RECLAIM))
    assert any("before it has run for 9 s" in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("at", "level", "told"),
    [
        ("z1/r1 z1/r2", "rack", "in 2 domains of level rack"),
        ("z1/r1 z2/r1", "rack", "in 2 domains of level rack"),
        ("z1/r1 z1/r1", "rack", ""),
        ("z1/r1 z1/r2", "zone", ""),
        ("z1 z1", "rack", "where the rack is unknown"),
        ("z1/r1 z1/r1", "row", "where the row is unknown"),
    ],
)
def test_it_tells_of_a_gang_that_is_not_together(at: str, level: str, told: str) -> None:
    nodes = [node(f"n{i}", gpus=1, at=where) for i, where in enumerate(at.split())]
    asked = job("w", "a", pods(2), within=level)
    of = snapshot(nodes=nodes, queues=[queue("a", h100=2)], pending=[asked], levels="zone rack")
    apart = decide(replace(of, pending=(replace(asked, topology=None),))).plan
    found = violations(of, apart)
    assert bool(found) == bool(told)
    assert told in "".join(found)


def test_it_tells_of_cores_that_a_node_does_not_have() -> None:
    of = replace(
        OF, clusters=(cluster("c1", [node("n1", gpus=4, cores=3), *OF.clusters[0].nodes[1:]]),)
    )
    assert any("too few cores" in sentence for sentence in violations(of, GOOD))


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (Quota(1), Quota(4), "project a holds"),
        (Quota(0, borrow=None), Quota(3), "the fleet holds"),
        (Quota(0, borrow=None), Quota(4, lend=0), "the fleet holds"),
    ],
    ids=["its own limit", "the total", "what is not lent"],
)
def test_it_tells_of_quota_that_is_passed(a: Quota, b: Quota, told: str) -> None:
    of = replace(OF, queues=(queue("a", h100=a, _3g=4), queue("b", h100=b)))
    assert any(told in sentence for sentence in violations(of, GOOD))


def test_it_tells_of_two_slices_with_media_engines_on_a_device() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1, dynamic=True)],
        queues=[queue("a", _1gme=4)],
        pending=[job("w", "a", pods(flavors="1gme"))],
        holding=[runs("r", "a", "n1/0", flavor="1gme", span=(0, 1))],
    )
    (hold,) = decide(of).plan.holds
    span = ((DeviceId("n1/0"), Span(4, 5)),)
    place = Place(PodSetId("w.main"), 0, NodeId("n1"), FlavorId("1gme"), 1000, 1000, 1024, span)
    forced = Plan((Admit(hold.workloads[0], ClusterId("c1"), (place,)),))
    assert violations(of, forced) == ("device n1/0 has 2 slices with media engines",)


def test_it_tells_of_a_new_slice_around_an_old_one() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1, dynamic=True)],
        queues=[queue("a", _7g=4, _1g=1)],
        pending=[job("w", "a", pods(flavors="7g"))],
        holding=[runs("r", "a", "n1/0", flavor="1g", span=(3, 4))],
    )
    span = ((DeviceId("n1/0"), Span(0, 8)),)
    place = Place(PodSetId("w.main"), 0, NodeId("n1"), FlavorId("7g"), 1000, 1000, 1024, span)
    forced = Plan((Admit(WorkloadId("w"), ClusterId("c1"), (place,)),))
    assert violations(of, forced) == ("two holders overlap on device n1/0 at 3",)


def test_what_the_snapshot_breaks_already_is_not_told() -> None:
    twice = [runs("x", "b", "n1/0"), runs("y", "b", "n1/0")]
    of = snapshot(nodes=[node("n1", gpus=2)], queues=[queue("b", h100=1)], holding=twice)
    assert violations(of, Plan()) == ()


@pytest.mark.parametrize(
    ("on", "held", "asks", "told"),
    [
        (node("n", gpus=3), runs("r", "b", "n/3"), pods(gpus=3), "4 devices or replicas"),
        (node("n", gpus=3), runs("r", "b", "n/3"), pods(gpus=2), ""),
        (
            node("n", gpus=1, cut=(("3g.40gb", 0, 4),)),
            runs("r", "b", "n/1", flavor="3g", span=(0, 4)),
            pods(flavors="3g"),
            "2 3g.40gb",
        ),
        (
            node("n", gpus=1, model=T4, shares=Isolation.MEMORY, replicas=4),
            runs("r", "b", "n/1", flavor="t4share", span=(0, 250), amount=0.25),
            pods(flavors="t4share", share=0.8),
            "5 devices or replicas",
        ),
    ],
    ids=["devices", "as many as there are", "slices", "replicas"],
)
def test_it_tells_of_more_held_than_a_node_has_that_lost_a_count_token(
    on: NodeView, held: HoldingView, asks: PodSetView, told: str
) -> None:
    queues = [queue("a", h100=4, _3g=4, t4share=4), queue("b")]
    of = snapshot(nodes=[on], queues=queues, holding=[held], pending=[job("w", "a", asks)])
    made = decide(of, preemption=False).plan
    assert made.admits
    assert violations(of, made) == ()
    counted = (replace(c, nodes=(replace(on, counted=True),)) for c in of.clusters)
    found = violations(replace(of, clusters=tuple(counted)), made)
    assert bool(found) == bool(told)
    assert told in "".join(found)
