"""Work to which one accepted flavor is as good as another: prices of gaps choose among them."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node.fragmentation import Packing
from scheduler.core.node.shapes import Node, Shape
from scheduler.core.snapshot import (
    Isolation,
    NodeView,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import ONE_MILLI
from tests.core.build import (
    A30,
    T4,
    Quota,
    decide,
    job,
    node,
    pods,
    queue,
    queue_of,
    runs,
    snapshot,
)
from tests.core.moving.test_better import fleet, on, up

ANY = Quota(1000, borrow=None)
QUEUE = queue("a", h100=ANY, a30=ANY, t4=ANY, a30share=ANY, t4share=ANY)


def shared(name: str, model: str, *, gpus: int = 1, cores: int = 64) -> NodeView:
    return node(name, gpus=gpus, model=model, cores=cores, shares=Isolation.MEMORY)


def any_of(pod_set: PodSetView) -> PodSetView:
    return replace(pod_set, any_order=True)


def tight() -> Snapshot:
    """A share of 0.35 closes the T4, beside 0.65; of the A30 it would leave what nobody asks for.
    Whole devices are asked for, too."""
    holding = [runs("r", "a", "n2/0", flavor="t4share", span=(0, 650), amount=0.65)]
    return snapshot(
        nodes=[shared("n1", A30), shared("n2", T4)],
        queues=[QUEUE],
        holding=holding,
        pending=[job("v", "a", pods(flavors="a30"))],
    )


def first(wanted: PodSetView, of: Snapshot, *, project: str = "a") -> Snapshot:
    return replace(of, pending=(job("w", project, wanted, priority=1), *of.pending))


@pytest.mark.parametrize("flavors", ["a30share t4share", "t4share a30share"])
def test_it_starts_where_that_leaves_most_to_others(flavors: str) -> None:
    wanted = pods(flavors=flavors, share=0.35)
    assert decide(first(any_of(wanted), tight())).nodes("w") == ["n2"]


def test_an_order_that_was_said_is_kept() -> None:
    wanted = pods(flavors="a30share t4share", share=0.35)
    assert decide(first(wanted, tight())).nodes("w") == ["n1"]


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        pytest.param(
            {"a30share": Quota(1, borrow=0), "t4share": Quota(0, borrow=None)},
            "n1",
            id="what is its own before what it borrows",
        ),
        pytest.param({"a30share": Quota(1, borrow=0)}, "n1", id="what it has a quota of"),
        pytest.param(
            {"a30share": Quota(0, borrow=None), "t4share": Quota(0, borrow=None)},
            "n2",
            id="the cheapest of what is borrowed",
        ),
    ],
)
def test_quotas_come_before_prices(quotas: dict[str, float | Quota], expected: str) -> None:
    of = tight()
    of = replace(of, queues=(*of.queues, queue_of("b", quotas)))
    wanted = any_of(pods(flavors="a30share t4share", share=0.35))
    assert decide(first(wanted, of, project="b")).nodes("w") == [expected]


def test_where_not_all_of_a_gang_fits_another_flavor_is_tried() -> None:
    of = tight()
    gang = any_of(pods(2, flavors="t4share a30share", share=0.35))
    assert decide(first(gang, of)).nodes("w") == ["n1", "n1"]


def test_devices_that_can_not_be_shared_go_first() -> None:
    nodes = [shared("n1", T4, gpus=2), node("n2", gpus=2)]
    wanted = any_of(pods(flavors="t4 h100"))
    of = snapshot(nodes=nodes, queues=[QUEUE], pending=[job("w", "a", wanted)])
    assert decide(of).nodes("w") == ["n2"]


def test_by_memory_each_flavor_costs_what_it_takes_of_it() -> None:
    """6 GiB are 0.4 of a T4 and 0.25 of an A30, of which four fill a device."""
    wanted = any_of(pods(flavors="t4share a30share"))
    others = [
        job(f"v{i}", "a", any_of(pods(flavors="t4share a30share", share=0.25))) for i in range(12)
    ]
    of = snapshot(nodes=[shared("n1", T4), shared("n2", A30)], queues=[QUEUE], pending=others)
    assert decide(first(replace(wanted, gpu_memory_mib=6144), of)).nodes("w") == ["n2"]


def test_one_pod_set_in_order_beside_one_in_any() -> None:
    """Rank goes before price: the h100 is the first choice of the one, wherever the other is."""
    of = tight()
    ordered = pods(flavors="h100 a30", name="x")
    some = any_of(pods(flavors="a30share t4share", share=0.35, name="y"))
    nodes = (*of.clusters[0].nodes, node("n3", gpus=1), shared("n4", A30))
    of = replace(of, clusters=(replace(of.clusters[0], nodes=nodes),), pending=())
    of = replace(of, pending=(job("w", "a", ordered, some),))
    assert decide(of).nodes("w") == ["n3", "n2"]


@pytest.mark.parametrize("any_order", [False, True])
def test_it_moves_up_only_where_there_is_an_order(any_order: bool) -> None:
    held = on("r", "n2/0")
    (pod_set,) = held.pod_sets
    held = replace(held, pod_sets=(replace(pod_set, any_order=any_order),))
    assert up(fleet(held)) == ({} if any_order else {"r": "h100"})


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_one_after_the_other_goes_to_the_cheapest_node_of_all_models(seed: int) -> None:
    """As the score alone has it that looks at all nodes at once; nodes of one model come first by
    name, so that ties end alike."""
    pick = Random(seed)
    models = [A30] * pick.randint(1, 3) + [T4] * pick.randint(1, 3)
    nodes = [
        shared(f"n{i}", model, gpus=pick.randint(1, 4), cores=pick.choice([4, 8, 16]))
        for i, model in enumerate(models)
    ]
    waiting = [_asked(pick, f"w{i:02}") for i in range(pick.randint(1, 20))]
    of = snapshot(nodes=nodes, queues=[QUEUE], pending=waiting)
    made = decide(of)
    assert [made.nodes(p.id) if p.id in made.admits else None for p in waiting] == _alone(
        nodes, waiting
    )


def _asked(pick: Random, name: str) -> PendingView:
    share = pick.choice([0.2, 0.35, 0.5, 0.65, 1])
    kind = "share" if share < 1 else ""
    wanted = pods(
        flavors=f"a30{kind} t4{kind}",
        gpus=1 if share < 1 else pick.choice([1, 2]),
        share=share,
        cores=pick.choice([1, 2, 3]),
    )
    return job(name, "a", any_of(wanted), submitted_at=int(name[1:]))


def _alone(nodes: list[NodeView], waiting: list[PendingView]) -> list[list[str] | None]:
    now = [
        Node(
            on.cpu_milli,
            on.memory_mib,
            int(on.devices[0].model == T4),
            (ONE_MILLI,) * len(on.devices),
        )
        for on in nodes
    ]
    shapes = []
    for pending in waiting:
        (p,) = pending.pod_sets
        shapes.append(Shape(p.cpu_milli, p.memory_mib, p.gpu_count, p.gpu_milli, 0b11))
    packing = Packing(nodes=now, mix={shape: shapes.count(shape) for shape in shapes})
    found: list[list[str] | None] = []
    for shape in shapes:
        seat = packing.best(shape)
        found.append(None if seat is None else [nodes[seat.node].name])
        if seat is not None:
            on = now[seat.node]
            free = tuple(
                level - shape.gpu_milli if g in seat.devices else level
                for g, level in enumerate(on.free)
            )
            now[seat.node] = Node(
                on.cpu_milli - shape.cpu_milli, on.memory_mib - shape.memory_mib, on.model, free
            )
            packing.update(seat.node, now[seat.node])
    return found
