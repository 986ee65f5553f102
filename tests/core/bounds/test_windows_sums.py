"""What reservations lack is kept in sums, which are those over all that is held."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from types import FrameType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.bounds.windows import Windows
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli
from scheduler.core.plan import Place
from scheduler.core.snapshot import HoldingView, Snapshot
from tests.core.bounds.test_windows import HOUR, Kept, counts_for, fleet, less, reserved, window
from tests.core.build import AT, BY_NAME, job, node, runs
from tests.core.drawn.fleets import snapshots
from tests.core.evicting.test_evictions import place


@settings(max_examples=200, deadline=None)
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_the_sums_are_those_over_all_that_is_held_whoever_comes_and_goes(
    of: Snapshot, seed: int
) -> None:
    of, pick = reserved(of, seed), Random(seed)
    windows, draft = Windows(snapshot=of, holding=()), Draft(snapshot=of, holding=())
    held: list[HoldingView] = []
    for each in of.holding:
        windows.started(workload=replace(each, started_at=AT), places=_places(each))
        held.append(replace(each, started_at=AT))
        if pick.random() < 0.4:
            gone = held.pop(pick.randrange(len(held)))
            windows.left(holding=gone, placements=gone.placements)
    assert [*windows.lacking(draft=draft)] == [*_lacking(of, draft, held)]
    anew = Windows(snapshot=of, holding=held)
    assert windows.lacking(draft=draft) == anew.lacking(draft=draft)


def _places(held: HoldingView) -> list[Place]:
    return [
        Place(
            p.pod_set, p.rank, p.node, p.flavor, p.amount_milli, p.cpu_milli, p.memory_mib, p.spans
        )
        for p in held.placements
    ]


def _lacking(of: Snapshot, draft: Draft, held: list[HoldingView]) -> Iterator[int]:
    """Window by window, and holder by holder."""
    there = {
        id
        for cluster in of.clusters
        for on in cluster.nodes
        if cluster.usable and on.usable
        for id in (on.id, *(device.id for device in on.devices if device.usable))
    }
    for moment, flavor in sorted({(max(AT, w.starts_at), w.flavor) for w in of.reservations}):
        back = 0
        kept: list[Kept] = [
            (w.project or w.cohort, w.amount_milli)
            for w in of.reservations
            if w.flavor == flavor and w.starts_at <= moment < w.ends_at
        ]
        for each in held:
            ends_at = each.run_time_limit_s and AT + max(1, each.run_time_limit_s)
            if ends_at is None or ends_at > moment:
                holds = sum(p.amount_milli for p in each.placements if p.flavor == flavor)
                kept = less(kept, counts_for(of, each.project), holds)
        wanted = sum(amount for _, amount in kept)
        for each in held:
            ends_at = each.run_time_limit_s and AT + max(1, each.run_time_limit_s)
            if ends_at is not None and ends_at <= moment:
                for placed in each.placements:
                    uses = {placed.node, *(device for device, _ in placed.spans)}
                    if placed.flavor == flavor and uses <= there:
                        back += placed.amount_milli
        free = (
            free_milli(draft=draft, cluster=cluster, flavor=BY_NAME[flavor])
            for cluster in draft.clusters
        )
        yield wanted - back - sum(free)


def test_a_start_does_not_go_through_all_that_is_held() -> None:
    assert _steps(held=4) == _steps(held=40)


def _steps(*, held: int) -> int:
    """What Python executes to ask whether one may start beside so many, on a node that is gone."""
    of = fleet(
        job("w", "b", limit_s=60),
        windows=[window(1, opens=HOUR + i) for i in range(3)],
        holding=[runs(f"r{i}", "b", f"gone/{i}", limit_s=60 * i) for i in range(held)],
        nodes=[node("n1", gpus=8)],
    )
    [pending], places = of.pending, [place("n1", 0)]
    draft = Draft(snapshot=of, holding=of.holding)
    windows = Windows(snapshot=of, holding=of.holding)
    windows.why_not(draft=draft, pending=pending, places=places)  # which makes its index
    steps, tracing = 0, sys.gettrace()

    def count(frame: FrameType, event: str, arg: object) -> Any:  # as `settrace` says
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    sys.settrace(count)
    try:
        windows.why_not(draft=draft, pending=pending, places=places)
    finally:
        sys.settrace(tracing)
    return steps
