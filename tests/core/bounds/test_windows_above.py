"""Reservations of a tenant: for all projects below it together, beside their own."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.bounds.windows import Windows
from scheduler.core.snapshot import HoldingView, PendingView, ReservationView, Snapshot
from scheduler.core.units import CohortId
from tests.core.bounds.test_windows import HOUR, window
from tests.core.build import (
    AT,
    Outcome,
    Quota,
    cohort,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)

TREE = {"a": "vision", "b": "lab", "c": "other"}


def fleet(
    *pending: PendingView,
    windows: Sequence[ReservationView],
    holding: Sequence[HoldingView] = (),
) -> Snapshot:
    """Eight H100s, of which each may use all; vision, of project a, is a department of lab, of
    project b."""
    of = snapshot(
        nodes=[node("n1", gpus=8)],
        queues=[replace(queue(p, h100=8), cohort=CohortId(above)) for p, above in TREE.items()],
        pending=pending,
        holding=holding,
        cohorts=[cohort("lab"), cohort("vision", parent="lab"), cohort("other")],
    )
    return replace(of, reservations=tuple(windows))


def starts(
    *pending: PendingView, windows: Sequence[ReservationView], holding: Sequence[HoldingView] = ()
) -> Outcome:
    return decide(fleet(*pending, windows=windows, holding=holding))


def holds(project: str, first: int, count: int, *, limit_s: int | None = None) -> HoldingView:
    return runs(
        f"{project}{first}", project, *(f"n1/{first + i}" for i in range(count)), limit_s=limit_s
    )


def now(amount: float, *, of: str) -> ReservationView:
    """Open for an hour; of a project or a tenant."""
    if of in TREE:
        return window(amount, opens=-60, owner=of)
    return window(amount, opens=-60, above=of)


@pytest.mark.parametrize(("project", "started"), [("a", ["w"]), ("b", ["w"]), ("c", [])])
def test_work_of_all_below_it_at_any_depth_starts_on_it(project: str, started: list[str]) -> None:
    made = starts(job("w", project), windows=[now(8, of="lab")])
    assert made.started() == started


def test_it_is_not_for_those_above_or_beside() -> None:
    for project in ("b", "c"):
        assert starts(job("w", project), windows=[now(8, of="vision")]).started() == []


def test_before_it_opens_only_what_ends_in_time_of_others_starts() -> None:
    asked = [job("late", "c", limit_s=HOUR + 1), job("short", "c", limit_s=HOUR), job("own", "a")]
    assert starts(*asked, windows=[window(8, above="lab")]).started() == ["own", "short"]


def test_what_they_hold_counts_together() -> None:
    held = [holds("a", 0, 2), holds("b", 2, 2)]
    for asked, started in ((4, ["w"]), (5, [])):
        made = starts(job("w", "c", pods(asked)), windows=[now(4, of="lab")], holding=held)
        assert made.started() == started


def test_what_of_them_ends_before_it_opens_counts_as_free_and_not_as_theirs() -> None:
    held = [holds("a", 0, 4, limit_s=HOUR)]
    made = starts(job("w", "c", pods(4)), windows=[window(4, above="lab")], holding=held)
    assert made.started() == ["w"]
    made = starts(job("w", "c", pods(4)), windows=[window(5, above="lab")], holding=held)
    assert made.started() == []


@pytest.mark.parametrize(("asked", "started"), [(2, ["w"]), (3, [])])
def test_a_projects_and_its_tenants_add_up(asked: int, started: list[str]) -> None:
    reserved = [now(4, of="lab"), now(2, of="a")]
    assert starts(job("w", "c", pods(asked)), windows=reserved).started() == started


@pytest.mark.parametrize(
    ("reserved", "held", "kept"),
    [
        ({"a": 2, "lab": 4}, {"a": 1}, 5),
        ({"a": 2, "lab": 4}, {"a": 2}, 4),
        ({"a": 2, "lab": 4}, {"a": 3}, 3),
        ({"a": 2, "lab": 4}, {"a": 3, "b": 2}, 1),
        ({"a": 2, "lab": 4}, {"b": 2}, 4),
        ({"a": 2, "lab": 4}, {"b": 5}, 2),
        ({"a": 1, "vision": 2, "lab": 2}, {"a": 4}, 1),
        ({"a": 1, "vision": 2, "lab": 2}, {"b": 3}, 3),
        ({"vision": 2, "lab": 2}, {"a": 3}, 1),
        ({"vision": 2, "other": 2}, {"a": 4}, 2),
    ],
)
def test_what_is_held_counts_once_the_nearest_first(
    reserved: dict[str, int], held: dict[str, int], kept: int
) -> None:
    """All that is free, less what is kept, is for a stranger."""
    windows = [now(amount, of=of) for of, amount in reserved.items()]
    firsts = {project: sum(list(held.values())[:nth]) for nth, project in enumerate(held)}
    holding = [holds(project, firsts[project], count) for project, count in held.items()]
    free = 8 - sum(held.values())
    asked = [job(f"w{i}", "d", pods(), submitted_at=i) for i in range(8)]
    of = fleet(*asked, windows=windows, holding=holding)
    made = decide(replace(of, queues=(*of.queues, queue("d", h100=8))))
    assert len(made.started()) == max(0, free - kept)


def test_a_later_window_of_the_tenant_takes_nothing_from_the_projects_own() -> None:
    """Then the project's is over, and what it holds counts for its tenant."""
    windows = [window(4, opens=-60, lasts=HOUR, owner="a"), window(4, opens=HOUR, above="lab")]
    held = [holds("a", 0, 4)]
    assert starts(job("w", "c", pods(4)), windows=windows, holding=held).started() == ["w"]
    assert starts(job("w", "c", pods(4)), windows=windows).started() == ["w"]
    assert starts(job("w", "c", pods(5)), windows=windows).started() == []


def test_who_has_left_the_tenant_holds_nothing_of_it() -> None:
    of = fleet(job("w", "c", pods(4)), windows=[now(4, of="vision")], holding=[holds("a", 0, 4)])
    assert decide(of).started() == ["w"]
    moved = (replace(q, cohort=CohortId("lab")) if q.project == "a" else q for q in of.queues)
    assert decide(replace(of, queues=tuple(moved))).started() == []


@pytest.mark.parametrize(("amount", "victims"), [(7, 1), (8, 0)])
def test_they_give_up_what_is_beyond_it(amount: int, victims: int) -> None:
    """All is c's, and borrowed by projects of lab."""
    held = [holds(project, first, 1) for project, first in zip("aabb" * 2, range(8), strict=True)]
    of = fleet(job("w", "c"), windows=[now(amount, of="lab")], holding=held)
    assert len(decide(borrowing(of)).victims()) == victims


def test_who_holds_what_is_reserved_for_its_tenant_makes_up_for_nothing() -> None:
    """Two are free, and reserved; those of lab would go with less harm, and give it nothing."""
    ours = [runs(f"a{i}", "a", f"n1/{i}") for i in range(3)]
    others = [replace(runs(f"d{i}", "d", f"n1/{3 + i}"), started_at=AT - 9000) for i in range(3)]
    of = fleet(job("w", "c", pods(3)), windows=[now(5, of="lab")], holding=[*ours, *others])
    of = borrowing(replace(of, queues=(*of.queues, queue("d"))))
    assert sorted(victim for victim, *_ in decide(of).victims()) == ["d0", "d1", "d2"]
    assert {victim[0] for victim, *_ in decide(replace(of, reservations=())).victims()} == {"a"}
    windows = Windows(snapshot=of, holding=of.holding)
    in_vain = [
        h.id for h in of.holding if windows.gain_nothing(holding=h, placements=h.placements)
    ]
    assert in_vain == ["a0", "a1", "a2"]


def borrowing(of: Snapshot) -> Snapshot:
    """All quota is project c's, and others borrow it."""
    quotas = {each.project: Quota(100 if each.project == "c" else 0, None) for each in of.queues}
    queues = (replace(q, quotas=queue("", h100=quotas[q.project]).quotas) for q in of.queues)
    return replace(of, queues=tuple(queues))
