"""What a pod gets of a flavor when it asks for memory of a device, and who is charged how much."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.explaining.checks import CheckCode
from scheduler.core.explaining.explain import explain
from scheduler.core.laws.invariants import violations
from scheduler.core.policy import Policy
from scheduler.core.quota.portions import portion_milli
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.snapshot import CapsView, Isolation, PodSetView, Snapshot
from scheduler.core.units import FlavorId, UserId
from tests.core.build import BY_NAME, T4, Quota, decide, job, node, pods, queue, runs, snapshot

T4_MIB = 15_360
SHARED = [node("n1", gpus=1, model=T4, shares=Isolation.MEMORY, replicas=4)]


def of_memory(mib: int, flavors: str = "t4share", count: int = 1) -> PodSetView:
    return replace(pods(count, flavors=flavors), gpu_memory_mib=mib)


@given(asked=st.integers(1, 1 << 40), device=st.integers(1, 1 << 40))
def test_a_portion_is_the_least_that_has_the_memory(asked: int, device: int) -> None:
    flavor = replace(BY_NAME[FlavorId("t4share")], memory_mib=device)
    milli = portion_milli(gpu_memory_mib=asked, flavor=flavor)
    if asked > device:
        assert milli is None
    else:
        assert milli is not None
        assert 1 <= milli <= 1000
        assert milli * device >= asked * 1000 > (milli - 1) * device


@pytest.mark.parametrize("flavor", ["cpu", "t4all", "t4"])
def test_of_what_is_no_device_or_of_unknown_memory_there_is_none(flavor: str) -> None:
    assert portion_milli(gpu_memory_mib=1, flavor=BY_NAME[FlavorId(flavor)]) is None


def test_it_takes_whole_replicas_and_is_charged_for_what_it_asks() -> None:
    of = snapshot(
        nodes=SHARED,
        queues=[queue("a", t4share=Quota(1))],
        pending=[job("w", "a", of_memory(5_000))],
    )
    made = decide(of)
    assert violations(of, made.plan) == ()
    assert made.spans("w") == [("n1/0", 0, 500)]
    assert [place.amount_milli for place in made.places("w")] == [326]


def test_quota_counts_what_is_given() -> None:
    of = snapshot(
        nodes=SHARED,
        queues=[queue("a", t4share=Quota(0.5))],
        pending=[job("w", "a", of_memory(5_120, count=2))],
    )
    assert decide(of).numbers("w")["asked_milli"] == 668


def test_a_cap_of_a_submitter_counts_what_is_given() -> None:
    caps = CapsView(user_gpus_milli=400)
    of = snapshot(
        nodes=SHARED,
        queues=[replace(queue("a", t4share=Quota(1)), caps=caps)],
        pending=[
            job("w", "a", of_memory(5_120), user="ada"),
            job("x", "a", of_memory(5_120), user="ada", submitted_at=1),
        ],
    )
    made = decide(of)
    assert made.started() == ["w"]
    assert made.numbers("x")["used_milli"] == 334
    assert of.pending[0].user == UserId("ada")


def test_more_than_a_device_has_is_refused_with_what_it_has() -> None:
    of = snapshot(
        nodes=SHARED,
        queues=[queue("a", t4share=Quota(1))],
        pending=[job("w", "a", of_memory(T4_MIB + 1))],
    )
    made = decide(of)
    assert made.reason("w") is ReasonCode.EXCEEDS_CAPACITY
    assert describe(made.hold("w").reason) == (
        "15 GiB of GPU memory asked; one GPU of t4share has 15 GiB."
    )


def capped(cap_milli: int, *, shares: int = 8, most: int = 8, pending: int = 1) -> Snapshot:
    """So many ask for 5,000 MiB: 326 thousandths of a shared T4, or else a whole H100."""
    caps = CapsView(user_gpus_milli=cap_milli)
    waiting = [
        job(f"w{i}", "a", of_memory(5_000, "t4share h100"), user=UserId("ada"), submitted_at=i)
        for i in range(pending)
    ]
    of = queue("a", t4share=Quota(shares), h100=Quota(most))
    made = snapshot(
        nodes=[*SHARED, node("n2", gpus=2)], queues=[replace(of, caps=caps)], pending=waiting
    )
    known = (replace(f, memory_mib=81_920) if f.id == "h100" else f for f in made.flavors)
    return replace(made, flavors=tuple(known))


def test_a_cap_counts_what_its_submitter_gets_and_not_what_it_might() -> None:
    of = capped(500)
    made = decide(of)
    assert violations(of, made.plan) == ()
    assert [place.amount_milli for place in made.places("w0")] == [326]


def test_a_flavor_that_passes_the_cap_is_not_taken_where_a_lesser_one_is_full() -> None:
    of = capped(500, shares=0)
    made = decide(of)
    assert violations(of, made.plan) == ()
    assert made.started() == []


def test_who_has_none_left_of_a_cap_is_told_the_least_that_it_would_hold() -> None:
    of = capped(1400, pending=5)
    made = decide(of)
    assert violations(of, made.plan) == ()
    assert made.started() == ["w0", "w1"]  # one device has two of them; an H100 passes the cap
    of = capped(700, pending=3)
    made = decide(of)
    assert made.reason("w2") is ReasonCode.CAP_REACHED
    assert made.numbers("w2")["asked_milli"] == 326


def test_where_one_flavor_passes_the_cap_and_one_is_in_use_each_is_told() -> None:
    held = replace(runs("r", "b", "n1/0", flavor="t4share", amount=1.0, span=(0, 1000)))
    of = replace(capped(500), holding=(held,))
    of = replace(of, queues=(*of.queues, queue("b", t4share=Quota(8))))
    assert decide(of).started() == []
    found = explain(snapshot=of, policy=Policy(), pending=of.pending[0])
    failed = [[c.code for c in chain.checks if c.passed is False] for chain in found.chains]
    assert failed[1] == [CheckCode.CAPS]
    assert failed[0] != failed[1]
