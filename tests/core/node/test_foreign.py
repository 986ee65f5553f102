"""Devices that pods of others hold: nothing of ours is put there, and they are no defect."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.node import mig
from scheduler.core.node.fit import Misfit, Room
from scheduler.core.node.foreign import UNITS, held_spans
from scheduler.core.reasons import FaultKind, ReasonCode
from scheduler.core.snapshot import Isolation, NodeView
from scheduler.core.units import WHOLE_DEVICE, DeviceId, DeviceSpan, FlavorId, Span
from tests.core.build import (
    BY_NAME,
    T4,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

CUT = (("1g.10gb", 0, 1), ("1g.10gb", 1, 2), ("3g.40gb", 4, 8))
NODES = {
    "whole": node("n", gpus=3),
    "cut": node("n", gpus=2, cut=CUT),
    "cut on demand": node("n", gpus=2, dynamic=True),
    "shared": node("n", gpus=2, model=T4, shares=Isolation.NONE, replicas=3),
}


def part(device: str, start: int = 0, end: int = 1000) -> DeviceSpan:
    return DeviceId(device), Span(start, end)


H100 = BY_NAME[FlavorId("h100")]
THIRDS = [part("n/1", start, start + 333) for start in (0, 333, 666)]


def of_others(of: NodeView, *held: DeviceSpan) -> NodeView:
    return replace(of, foreign=held)


@pytest.mark.parametrize(
    ("kind", "held", "expected"),
    [
        ("whole", {UNITS: 2}, [part("n/1"), part("n/2")]),
        ("cut", {"1g.10gb": 3}, [part("n/0", 0, 1), part("n/1", 0, 1), part("n/1", 1, 2)]),
        ("cut", {"3g.40gb": 1, UNITS: 1}, [part("n/1", 4, 8)]),
        ("cut on demand", {"1g.10gb": 3, "4g.40gb": 2}, [
            part("n/0", 0, 4), *(part("n/1", a, b) for a, b in ((0, 4), (4, 5), (5, 6), (6, 7))),
        ]),
        ("cut on demand", {"3g.40gb": 1, "4g.40gb": 1}, [part("n/1", 0, 4), part("n/1", 4, 8)]),
        ("cut on demand", {"3g.40gb": 1, "1g.10gb": 1}, [part("n/1", 3, 4), part("n/1", 4, 8)]),
        ("shared", {UNITS: 4}, [part("n/0", 0, 333), *THIRDS]),
    ],
)  # fmt: skip
def test_they_lie_from_the_last_device_on(
    kind: str, held: dict[str, int], expected: list[DeviceSpan]
) -> None:
    assert list(held_spans(node=NODES[kind], held=held, ours=())) == expected


def test_they_stay_where_they_are_though_others_come_free() -> None:
    before = of_others(NODES["whole"], part("n/0"))
    assert held_spans(node=before, held={UNITS: 1}, ours=()) == (part("n/0"),)
    assert held_spans(node=before, held={UNITS: 2}, ours=()) == (part("n/0"), part("n/2"))


def test_they_make_way_for_our_own_pods() -> None:
    before = of_others(NODES["whole"], part("n/2"))
    assert held_spans(node=before, held={UNITS: 1}, ours=[part("n/2")]) == (part("n/1"),)


def test_more_than_there_is_room_for_is_left_out() -> None:
    found = held_spans(node=NODES["whole"], held={UNITS: 9}, ours=[part("n/0")])
    assert found == (part("n/1"), part("n/2"))


@given(
    kind=st.sampled_from(sorted(NODES)),
    held=st.dictionaries(st.sampled_from([UNITS, "1g.10gb", "3g.40gb"]), st.integers(0, 6)),
    before=st.dictionaries(st.sampled_from([UNITS, "1g.10gb", "3g.40gb"]), st.integers(0, 6)),
    ours=st.dictionaries(st.sampled_from([UNITS, "1g.10gb"]), st.integers(0, 2)),
)
def test_they_never_overlap_and_are_found_again(
    kind: str, held: dict[str, int], before: dict[str, int], ours: dict[str, int]
) -> None:
    of = NODES[kind]
    own = held_spans(node=of, held=ours, ours=())
    was = replace(of, foreign=held_spans(node=of, held=before, ours=()))
    found = held_spans(node=was, held=held, ours=own)
    bits = Counter[tuple[DeviceId, int]]()
    for device, span in (*own, *found):
        bits.update((device, at) for at in range(span.start, span.end))
    assert max(bits.values(), default=0) <= 1
    assert held_spans(node=replace(of, foreign=found), held=held, ours=own) == found
    assert len(found) <= sum(held.values())


def test_nearly_all_that_two_empty_devices_can_be_cut_into_has_a_place() -> None:
    of = NODES["cut on demand"]
    most = {"1g.10gb": 7, "1g.20gb": 3, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 2, "7g.80gb": 1}
    tried = missed = 0
    for counts in product(*(range(each + 1) for each in most.values())):
        held = dict(zip(most, counts, strict=True))
        with suppress(mig.ImpossibleLayout):
            mig.arrange(model=of.devices[0].model, counts=held, devices=2)
            tried += 1
            missed += len(held_spans(node=of, held=held, ours=())) < sum(counts)
    assert (tried, missed) == (556, 4)


def test_a_pod_fits_beside_them_and_not_where_they_are() -> None:
    room = Room(node=of_others(NODES["whole"], part("n/2")))
    [mine] = runs("w", "a", "n/2").placements
    assert room.misfit(place=mine, flavor=H100) is Misfit.SPAN_TAKEN
    [beside] = runs("w", "a", "n/1").placements
    assert room.misfit(place=beside, flavor=H100) is None
    room.take(holder=beside, flavor=H100)
    room.give(holder=beside, flavor=H100)
    assert room.taken[DeviceId("n/2")] == mig.mask(WHOLE_DEVICE)


def test_work_waits_for_them_and_is_not_told_that_it_never_starts() -> None:
    three = job("w", "a", pods(gpus=3))
    with_others = cluster("c1", [of_others(NODES["whole"], part("n/2"))])
    made = decide(snapshot(clusters=[with_others], queues=[queue("a", h100=4)], pending=[three]))
    assert not made.plan.admits
    assert made.reason("w") is ReasonCode.NO_FREE_CAPACITY
    alone = cluster("c1", [NODES["whole"]])
    made = decide(snapshot(clusters=[alone], queues=[queue("a", h100=4)], pending=[three]))
    assert [admit.workload for admit in made.plan.admits] == ["w"]


@pytest.mark.parametrize("theirs", [(), (part("n/2"),)])
def test_nobody_is_evicted_for_who_would_lack_what_they_hold_still(
    theirs: tuple[DeviceSpan],
) -> None:
    made = decide(
        snapshot(
            clusters=[cluster("c1", [of_others(NODES["whole"], *theirs)])],
            queues=[queue("a", h100=4)],
            pending=[job("high", "a", pods(gpus=3), priority=100)],
            holding=[runs("low", "a", "n/0", priority=0)],
        )
    )
    assert bool(made.plan.preempts) is not bool(theirs)


def test_a_device_that_both_hold_is_told_and_takes_nothing_new() -> None:
    of = cluster("c1", [of_others(NODES["whole"], part("n/2"))])
    made = decide(
        snapshot(clusters=[of], queues=[queue("a", h100=4)], holding=[runs("r", "a", "n/2")])
    )
    [fault] = made.plan.faults
    assert (fault.kind, fault.id) == (FaultKind.OVER_ALLOCATED, "n/2")
    assert "by placement r-0 [0, 1000) and foreign pods [0, 1000)" in fault.text
