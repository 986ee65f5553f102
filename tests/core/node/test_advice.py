"""How devices had better be cut: against what was asked for, by simulated waits."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.node import mig
from scheduler.core.node.advice import Advice, Arrival, advise
from tests.core.build import A30, H100, T4

DAY = 86_400


def asked(profile: str, count: int, *, every_s: int = 60, run_s: int = 3600) -> list[Arrival]:
    return [Arrival(i * every_s, profile, run_s) for i in range(count)]


def advice(arrivals: list[Arrival], *, devices: int = 1, **now: int) -> Advice:
    names = {name.replace("_", ".").lstrip("."): count for name, count in now.items()}
    made = advise(model=H100, devices=devices, arrivals=arrivals, now=names, until=DAY)
    assert made is not None
    return made


def test_all_small_work_gets_all_small_slices() -> None:
    made = advice(asked("1g.10gb", 7, every_s=0), **{"_3g_40gb": 2})
    assert made.layouts == (((("1g.10gb", 7),), 1),)
    assert (made.mean_wait_s, made.now_s, made.saved_s) == (0, DAY, DAY)


def test_a_mix_gets_slices_of_both_kinds() -> None:
    arrivals = asked("1g.10gb", 4, every_s=0) + asked("3g.40gb", 1)
    made = advice(arrivals, _1g_10gb=7)
    assert made.layouts == (((("1g.10gb", 4), ("3g.40gb", 1)), 1),)
    assert (made.mean_wait_s, made.now_s) == (0, DAY // 5)


def test_devices_may_be_cut_apart() -> None:
    arrivals = asked("1g.10gb", 7, every_s=0) + asked("7g.80gb", 1)
    made = advice(arrivals, devices=2)
    assert made.layouts == (((("1g.10gb", 7),), 1), ((("7g.80gb", 1),), 1))
    assert (made.mean_wait_s, made.now_s, made.saved_s) == (0, None, None)


def test_who_is_served_one_after_another_waits_for_those_before() -> None:
    made = advice(asked("7g.80gb", 3, every_s=0, run_s=600))
    assert made.mean_wait_s == (0 + 600 + 1200) // 3


@pytest.mark.parametrize(
    ("model", "devices", "arrivals"),
    [(H100, 1, []), (T4, 1, asked("1g.10gb", 1)), (H100, 0, asked("1g.10gb", 1)),
     (H100, 1, asked("1g.6gb", 1))],
)  # fmt: skip
def test_without_arrivals_devices_or_such_slices_there_is_no_advice(
    model: str, devices: int, arrivals: list[Arrival]
) -> None:
    assert advise(model=model, devices=devices, arrivals=arrivals, now={}, until=DAY) is None


_arrivals = st.lists(
    st.builds(
        Arrival,
        st.integers(0, 50),
        st.sampled_from(["1g.6gb", "2g.12gb", "4g.24gb"]),
        st.integers(1, 60),
    ),
    min_size=1,
    max_size=12,
)


def waited(arrivals: list[Arrival], slices: dict[str, int], until: int) -> int:
    """Second by second: whoever of a profile came first gets a slice when one is free."""
    total, running = 0, list[tuple[str, int]]()
    waiting = sorted(arrivals)
    for now in range(until):
        running = [(profile, end) for profile, end in running if end > now]
        for arrival in [a for a in waiting if a.at <= now]:
            busy = sum(1 for profile, _ in running if profile == arrival.profile)
            if busy < slices.get(arrival.profile, 0):
                running.append((arrival.profile, now + arrival.run_s))
                waiting.remove(arrival)
                total += now - arrival.at
    return total + sum(until - arrival.at for arrival in waiting)


@settings(max_examples=60, deadline=None)
@given(_arrivals)
def test_of_one_device_no_other_cut_would_wait_less(arrivals: list[Arrival]) -> None:
    names = sorted({arrival.profile for arrival in arrivals})
    made = advise(model=A30, devices=1, arrivals=arrivals, now={}, until=100)
    assert made is not None
    least = min(
        waited(arrivals, dict(zip(names, counts, strict=True)), 100)
        for counts in product(range(5), repeat=len(names))
        if _fits(dict(zip(names, counts, strict=True)))
    )
    assert made.mean_wait_s == least // len(arrivals)


def _fits(counts: dict[str, int]) -> bool:
    try:
        mig.arrange(model=A30, counts=counts, devices=1)
    except mig.ImpossibleLayout:
        return False
    return True
