"""The bench of MIG decides as the plan does, and the core's rule is not below the simple ones."""

import random
from collections import Counter

import pytest

from scheduler.core.node.slices import mix_of
from scheduler.core.units import Span
from tests.bench.mig import MIXES, RULES, SIMPLE, decisions_per_s
from tests.bench.mig_play import EVEN, GPUS, SLICES, WIDTHS, Fleet, Request, ours, play, stream
from tests.core.build import H100, Quota, decide, job, node, pods, queue_of, snapshot

FLAVORS = {"1g": "1g.10gb", "2g": "2g.20gb", "3g": "3g.40gb", "7g": "7g.80gb"}


@pytest.mark.parametrize("seed", range(4))
def test_the_plan_and_the_bench_cut_the_same_slices(seed: int) -> None:
    chance = random.Random(seed)
    asked = chance.choices(list(FLAVORS), weights=[chance.random() for _ in FLAVORS], k=80)
    waiting = [
        job(f"{n:03}", "a", pods(flavors=name, cores=0), submitted_at=n)
        for n, name in enumerate(asked)
    ]
    unlimited = queue_of("a", {name: Quota(100, borrow=None) for name in FLAVORS})
    nodes = [node(f"n{n:02}", 1, dynamic=True) for n in range(20)]
    made = decide(snapshot(nodes=nodes, queues=[unlimited], pending=waiting))

    counts = Counter(FLAVORS[name] for name in asked)
    fleet, ranks = Fleet(len(nodes)), ours(mix_of(model=H100, asked=counts, devices=len(nodes)))
    for n, name in enumerate(asked):
        found = fleet.find(ranks[FLAVORS[name]])
        if found is not None:
            device, span = found
            fleet.put(n, device, FLAVORS[name], span)
            assert made.spans(f"{n:03}") == [(f"n{device:02}/0", span.start, span.end)]
        else:
            assert f"{n:03}" in made.holds
    assert made.holds


def test_the_cores_rule_accepts_more_than_any_simple_one_and_most_with_reshape() -> None:
    """Over the mixes; that it holds on each takes more arrivals, as in `make bench-core`."""
    accepted: Counter[str] = Counter()
    for weights in MIXES.values():
        requests = stream(weights, seed=42, load=1.2, count=6_000)
        found = {rule.name: play(rule, requests, load=1.2) for rule in RULES}
        best = max(found[rule.name].accepted for rule in SIMPLE)
        assert found["reshape"].accepted > best
        assert found["reshape"].moves > 0
        accepted.update({name: outcome.accepted for name, outcome in found.items()})
    assert accepted["berth"] > max(accepted[rule.name] for rule in SIMPLE)


@pytest.mark.parametrize(
    ("rule", "taken", "expected"),
    [
        ("first_fit", [0b0011, 0b1111], (0, Span(2, 3))),
        ("best_fit", [0b0011, 0b1111], (1, Span(6, 7))),
        ("least_fragmentation", [0b0000, 0b11110000], (1, Span(0, 1))),
        ("most_starts", [0b0000, 0b11110001], (1, Span(1, 2))),
    ],
)
def test_where_a_simple_rule_puts_the_smallest_slice(
    rule: str, taken: list[int], expected: tuple[int, Span]
) -> None:
    fleet = _fleet(taken)
    [chosen] = [found for found in RULES if found.name == rule]
    assert fleet.find(chosen.ranks(EVEN)["1g.10gb"]) == expected


def _fleet(taken: list[int]) -> Fleet:
    """With a 1g.10gb for each bit."""
    fleet = Fleet(len(taken))
    for device, bits in enumerate(taken):
        for start in range(8):
            if bits >> start & 1:
                fleet.put(device * 8 + start, device, "1g.10gb", Span(start, start + 1))
    return fleet


def test_a_reshape_moves_what_is_in_the_way_and_its_end_is_found() -> None:
    fleet = _fleet([0b00000001, 0b00110000])
    assert fleet.make_room(EVEN, "7g.80gb") == ((0, Span(0, 8)), 1)
    fleet.put(99, 0, "7g.80gb", Span(0, 8))
    assert fleet.where[0] == 1
    assert fleet.drop(0).profile == "1g.10gb"
    assert fleet.taken == [0b11111111, 0b00110000]


def test_as_much_is_asked_for_as_the_load_says() -> None:
    for weights in MIXES.values():
        requests = stream(weights, seed=1, load=1.2, count=20_000)
        held = sum(request.holds * WIDTHS[request.profile] for request in requests)
        assert held / requests[-1].at == pytest.approx(1.2 * GPUS * SLICES, rel=0.05)


def test_who_came_leaves_and_is_counted() -> None:
    requests = [Request(float(n), "7g.80gb", 0.5) for n in range(3 * GPUS)]
    outcome = play(RULES[0], requests, load=1.2)
    assert (outcome.arrived, outcome.accepted, outcome.moves) == (3 * GPUS, 3 * GPUS, 0)


def test_decisions_are_timed_in_a_full_fleet() -> None:
    assert decisions_per_s(devices=8, count=50) > 0
