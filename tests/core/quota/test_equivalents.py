"""Quotas over all of a model: devices, slices and shares count as the part that they take."""

from dataclasses import replace
from fractions import Fraction

import pytest

from scheduler.core.laws.invariants import violations
from scheduler.core.node import mig
from scheduler.core.quota.equivalents import DEVICE_MILLI, Part, counts_milli
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import FlavorKind, Isolation, Snapshot
from scheduler.core.units import ClusterId, FlavorId
from tests.core.build import (
    A30,
    H100,
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


@pytest.mark.parametrize(
    ("kind", "model", "profile", "milli"),
    [
        (FlavorKind.WHOLE, H100, "", 7000),
        (FlavorKind.SHARE, T4, "", 7000),
        (FlavorKind.MIG, H100, "1g.10gb", 1000),
        (FlavorKind.MIG, H100, "1g.10gb+me", 1000),
        (FlavorKind.MIG, H100, "1g.20gb", 1750),  # a quarter of its memory
        (FlavorKind.MIG, H100, "2g.20gb", 2000),
        (FlavorKind.MIG, H100, "3g.40gb", 3500),  # half of its memory
        (FlavorKind.MIG, H100, "4g.40gb", 4000),
        (FlavorKind.MIG, H100, "7g.80gb", 7000),
        (FlavorKind.MIG, A30, "1g.6gb", 1750),
        (FlavorKind.MIG, H100, "9g.90gb", 7000),  # not known: as much as there is
        (FlavorKind.CPU, "", "", 0),
        (FlavorKind.MODEL, H100, "", 0),
    ],
)
def test_each_counts_the_larger_part_of_compute_and_memory(
    kind: FlavorKind, model: str, profile: str, milli: int
) -> None:
    assert counts_milli(kind=kind, model=model, profile=profile) == milli


def test_no_slice_of_any_board_is_rounded() -> None:
    for board in mig.BOARDS:
        for profile in board.profiles:
            exact = mig.device_equivalent(model=board.name, profile=profile.name)
            counted = counts_milli(kind=FlavorKind.MIG, model=board.name, profile=profile.name)
            assert exact == Fraction(counted, DEVICE_MILLI)


def test_a_thousandth_of_a_device_is_not_rounded() -> None:
    part = Part(FlavorId("all"), 7000)
    assert [part.of(milli) for milli in (1, 333, 1000)] == [7, 2331, 7000]
    assert (part.within(7), part.within(13)) == (1, 1)


def named(count: int) -> list[str]:
    return [f"w{i}" for i in range(count)]


def test_seven_slices_of_a_seventh_are_one_device() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 2, dynamic=True)],
            queues=[queue("a", _1g=20, h100all=7)],
            pending=[job(name, "a", pods(flavors="1g")) for name in named(8)],
        )
    )
    assert made.started() == named(7)
    assert made.reason("w7") is ReasonCode.QUOTA_USED
    assert made.numbers("w7") == {
        "asked_milli": 1000,
        "available_milli": 0,
        "borrowable_milli": 0,
        "flavor": "h100all",
        "nominal_milli": 7000,
        "used_milli": 7000,
    }


@pytest.mark.parametrize(
    ("held", "started"), [("h100", []), ("3g", ["w0", "w1", "w2"]), ("7g", [])]
)
def test_whatever_runs_of_the_model_counts(held: str, started: list[str]) -> None:
    """Of 7 sevenths a device leaves none, half a device 3 whole slices."""
    work = {
        "h100": runs("old", "a", "m/0"),
        "3g": runs("old", "a", "n/0", flavor="3g", span=(4, 8)),
        "7g": runs("old", "a", "n/0", flavor="7g", span=(0, 8)),
    }
    made = decide(
        snapshot(
            nodes=[node("n", 2, dynamic=True), node("m", 1)],
            queues=[queue("a", _1g=20, _3g=2, _7g=1, h100=1, h100all=7)],
            pending=[job(name, "a", pods(flavors="1g")) for name in named(4)],
            holding=[work[held]],
        )
    )
    assert made.started() == started


def test_shares_count_by_the_thousandth() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 4, T4, shares=Isolation.MEMORY)],
            queues=[queue("a", t4share=8, t4all=7)],
            pending=[
                job("w0", "a", pods(flavors="t4share", share=0.3)),
                job("w1", "a", pods(flavors="t4share", share=0.7), submitted_at=1),
                job("w2", "a", pods(flavors="t4share", share=0.001), submitted_at=2),
            ],
        )
    )
    assert made.started() == ["w0", "w1"]
    assert made.numbers("w2")["asked_milli"] == 7


def test_a_flavor_that_its_own_quota_has_no_more_of_is_refused_by_that() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 2, dynamic=True)],
            queues=[queue("a", _1g=1, h100all=14)],
            pending=[job(name, "a", pods(flavors="1g")) for name in named(2)],
        )
    )
    assert made.started() == ["w0"]
    assert made.numbers("w1")["flavor"] == "1g"


def test_a_project_without_such_a_quota_is_bound_by_the_flavors_alone() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 4)],
            queues=[queue("a", h100=4, h100all=7), queue("b", h100=4)],
            pending=[job("w0", "a", pods(gpus=2)), job("w1", "b", pods(gpus=2))],
        )
    )
    assert made.started() == ["w1"]
    assert made.reason("w0") is ReasonCode.NEVER_ADMISSIBLE


def test_a_gang_over_two_flavors_counts_once_for_both() -> None:
    nodes = [node("n", 1, dynamic=True), node("m", 1)]
    gang = job("w", "a", pods(name="x"), pods(flavors="1g", name="y"))
    for quota, started in ((7, []), (8, ["w"])):
        queues = [queue("a", h100=1, _1g=7, h100all=quota)]
        made = decide(snapshot(nodes=nodes, queues=queues, pending=[gang]))
        assert made.started() == started


def test_what_may_be_more_stops_growing_at_the_quota_of_the_model() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 8)],
            queues=[queue("a", h100=8, h100all=21)],
            pending=[job("w", "a", pods(8, least=2))],
        )
    )
    assert len(made.places("w")) == 3


def test_nobody_can_ask_for_it() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 8)],
            queues=[queue("a", h100all=56)],
            pending=[job("w", "a", pods(flavors="h100all"))],
        )
    )
    assert made.reason("w") is ReasonCode.NO_MATCHING_FLAVOR


def test_what_is_borrowed_of_a_model_is_reclaimed_though_the_flavor_is_own() -> None:
    """b has 14 of 14 by right; a is within its quota of the flavor, and 7 over that of the
    model."""
    made = decide(
        snapshot(
            nodes=[node("n", 4)],
            queues=[
                queue("a", h100=4, h100all=Quota(0, borrow=None)),
                queue("b", h100=4, h100all=14),
            ],
            pending=[job("w", "b", pods(gpus=1))],
            holding=[runs("r0", "a", "n/0"), runs("r1", "a", "n/1", since_s=5)],
        )
    )
    assert made.victims() == [("r0", "w", "reclaim")]


def test_what_is_owned_of_both_is_left_alone() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 1)],
            queues=[queue("a", h100=1, h100all=7), queue("b", h100=1, h100all=7)],
            pending=[job("w", "b")],
            holding=[runs("r", "a", "n/0")],
        )
    )
    assert made.victims() == []


def test_what_is_borrowed_of_a_flavor_is_reclaimed_though_the_model_is_own() -> None:
    made = decide(
        snapshot(
            nodes=[node("n", 1)],
            queues=[
                queue("a", h100=Quota(0, borrow=None), h100all=7),
                queue("b", h100=1, h100all=7),
            ],
            pending=[job("w", "b")],
            holding=[runs("r", "a", "n/0")],
        )
    )
    assert made.victims() == [("r", "w", "reclaim")]


def by_flavor_or_model(*, firm: bool) -> Snapshot:
    """w of c asks for half a device. b holds 3 halves and borrows all; w needs two back. Of the
    model b has 11.5 sevenths and is guaranteed 7: r, a seventh, may go only unless two halves do.
    r costs least and is in w's way, or else x1 is, which costs the most or is `firm`."""
    first, second = (node(name, 1, dynamic=True) for name in ("n", "m"))
    return snapshot(
        clusters=[cluster("c1", [first]), cluster("c2", [second])],
        queues=[
            queue("b", _1g=1, _3g=Quota(0, borrow=None), h100all=7),
            queue("c", _3g=2, h100all=7),
        ],
        holding=[
            runs("r", "b", "n/0", flavor="1g", span=(2, 3), since_s=1),
            runs("x1", "b", "n/0", flavor="3g", span=(4, 8), since_s=99, preemptible=not firm),
            runs("x2", "b", "m/0", flavor="3g", span=(0, 4), since_s=7, in_cluster="c2"),
            runs("x3", "b", "m/0", flavor="3g", span=(4, 8), since_s=8, in_cluster="c2"),
        ],
        pending=[replace(job("w", "c", pods(flavors="3g")), clusters=(ClusterId("c1"),))],
    )


@pytest.mark.parametrize(("firm", "victims"), [(True, []), (False, ["x1", "x2"])])
def test_who_goes_by_the_model_is_not_wronged_by_who_goes_by_the_flavor(
    firm: bool, victims: list[str]
) -> None:
    of = by_flavor_or_model(firm=firm)
    made = decide(of)
    assert [victim for victim, *_ in made.victims()] == victims
    assert violations(of, made.plan) == ()


def test_nor_by_who_goes_for_another_in_the_same_plan() -> None:
    """v takes r, so w may not take both halves that it needs."""
    given = by_flavor_or_model(firm=True)
    taken = [runs(f"d{i}", "d", "n/0", flavor="1g", span=(i, i + 1)) for i in (0, 1, 3)]
    of = replace(
        given,
        queues=(given.queues[0], queue("c", _1g=1, _3g=2, h100all=7), queue("d", _1g=3)),
        holding=(*taken, *given.holding),
        pending=(
            job("v", "c", pods(flavors="1g")),
            replace(given.pending[0], clusters=(ClusterId("c2"),), submitted_at=1),
        ),
    )
    made = decide(of)
    assert made.victims() == [("r", "v", "reclaim")]
    assert violations(of, made.plan) == ()
