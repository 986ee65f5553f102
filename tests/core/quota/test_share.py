"""Fair share: what is borrowed, against the fleet, by weight; tenants before projects; and of
equals who used less before."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.quota.quota import Book
from scheduler.core.quota.share import SCALE, Shares
from scheduler.core.snapshot import CohortView, PastView, QueueView
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import Quota, cohort, queue, with_named

A, B, C = ProjectId("a"), ProjectId("b"), ProjectId("c")
H100, T4 = FlavorId("h100"), FlavorId("t4")
Tree = tuple[CohortView, ...]


def shares(
    used: dict[tuple[ProjectId, FlavorId], int], *queues: QueueView, cohorts: Tree = ()
) -> Shares:
    book = Book(cohorts=with_named(cohorts, queues), queues=queues)
    for (project, flavor), amount in used.items():
        book.charge(project=project, flavor=flavor, amount_milli=amount * 1000)
    return Shares(book=book)


def test_use_within_nominal_is_no_share() -> None:
    of = shares({(A, H100): 4}, queue("a", h100=4), queue("b", h100=4))
    assert of.of(project=A) == (0,)


def test_the_share_is_what_is_borrowed_as_a_part_of_the_fleet() -> None:
    of = shares({(A, H100): 6}, queue("a", h100=4), queue("b", h100=4))
    assert of.of(project=A) == (SCALE // 4,)


def test_the_largest_share_over_flavors_counts() -> None:
    queues = [queue("a", h100=0, t4=0), queue("b", h100=10, t4=4)]
    of = shares({(A, H100): 2, (A, T4): 2}, *queues)
    assert of.of(project=A) == (SCALE // 2,)


def test_a_heavier_project_has_a_smaller_share_of_the_same() -> None:
    queues = [queue("a", h100=0), queue("b", weight=3, h100=0), queue("c", h100=6)]
    of = shares({(A, H100): 2, (B, H100): 2}, *queues)
    assert of.of(project=A)[0] == 3 * of.of(project=B)[0]


def test_a_share_is_told_in_whole_parts_rounded_down() -> None:
    queues = [queue("a", weight=2, h100=0), queue("b", h100=3)]
    of = shares({}, *queues)
    of.charge(project=A, flavor=H100, amount_milli=1)
    assert of.of(project=A) == (SCALE // 3000 // 2,)
    assert all(isinstance(term, int) for term in of.of(project=A))


def test_where_nothing_is_guaranteed_all_that_is_used_counts() -> None:
    assert shares({(A, H100): 1}, queue("a", h100=0)).of(project=A) == (1000 * SCALE,)


def test_weight_zero_within_nominal_is_no_share() -> None:
    assert shares({(A, H100): 2}, queue("a", weight=0, h100=2)).of(project=A) == (0,)


def test_what_each_member_uses_beyond_nominal_is_told_by_number() -> None:
    queues = [queue("a", h100=1), queue("b", h100=4)]
    of = shares({(A, H100): 3, (B, H100): 1}, *queues)
    assert of.over(flavor=H100) == [0, 2000, -3000]
    assert of.over(flavor=T4) == [0, 0, 0]


def test_weight_zero_comes_after_everyone_who_borrows() -> None:
    queues = [queue("a", weight=0, h100=0), queue("b", h100=0), queue("c", h100=9)]
    of = shares({(A, H100): 1, (B, H100): 8}, *queues)
    assert of.of(project=A) > of.of(project=B)


def test_what_a_project_borrows_within_its_tenant_does_not_burden_the_tenant() -> None:
    queues = [queue("a", tenant="t", h100=4), queue("b", tenant="t", h100=4)]
    of = shares({(A, H100): 6}, *queues)
    assert of.of(project=A) == (0, SCALE // 4)
    assert of.of(project=B) == (0, 0)


def test_shares_follow_charges_there_and_back() -> None:
    queues = [queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)]
    of = shares({}, *queues)
    of.charge(project=A, flavor=H100, amount_milli=3000)
    assert of.of(project=A) == (SCALE // 2,)
    of.charge(project=A, flavor=H100, amount_milli=-2000)
    assert of.of(project=A) == (0,)


def test_an_unknown_project_has_no_share() -> None:
    of = shares({(C, H100): 5}, queue("a", h100=4))
    of.charge(project=C, flavor=H100, amount_milli=1000)
    assert of.of(project=C) == ()


def test_a_tenant_counts_by_its_own_weight_however_many_projects_it_has() -> None:
    queues = [queue("a", tenant="t", h100=0), queue("b", tenant="t", h100=0), queue("c", h100=8)]
    light = shares({(A, H100): 2}, *queues)
    heavy = shares({(A, H100): 2}, *queues, cohorts=(cohort("t", weight=2),))
    assert light.of(project=A) == (SCALE // 4, SCALE // 4)
    assert heavy.of(project=A) == (SCALE // 8, SCALE // 4)


def test_tenants_are_compared_before_their_departments_and_those_before_projects() -> None:
    queues = [
        queue("a", tenant="vision", h100=0),
        queue("b", tenant="speech", h100=2),
        queue("c", tenant="other", h100=2),
    ]
    tree = (cohort("lab"), cohort("vision", parent="lab"), cohort("speech", parent="lab"))
    of = shares({(A, H100): 3}, *queues, cohorts=tree)
    # The lab borrows 1 of 4; in it vision borrows 3, all by its project a.
    assert of.of(project=A) == (SCALE // 4, 3 * SCALE // 4, 3 * SCALE // 4)
    assert of.of(project=B) == (SCALE // 4, 0, 0)
    assert of.of(project=C) == (0, 0, 0)
    assert sorted([A, B, C], key=lambda project: of.of(project=project)) == [C, B, A]


def test_a_project_without_a_department_stands_in_its_place() -> None:
    queues = [queue("a", tenant="vision", h100=4), queue("b", tenant="lab", h100=0)]
    tree = (cohort("lab"), cohort("vision", parent="lab"))
    of = shares({(B, H100): 1}, *queues, cohorts=tree)
    assert of.of(project=B) == (0, SCALE // 4, SCALE // 4)


def after(of: QueueView, **used_s: int) -> QueueView:
    """With a past of so many seconds of a whole unit of each flavor."""
    past = tuple(PastView(FlavorId(flavor), 1000 * s) for flavor, s in used_s.items())
    return replace(of, past=past)


def test_the_past_is_told_in_seconds_of_the_whole_fleet_of_the_flavor_used_most() -> None:
    made = [queue("a", h100=2, t4=1), queue("b", weight=3, h100=2, t4=1)]
    of = shares({}, after(made[0], h100=8, t4=10), after(made[1], h100=12))
    assert of.past(project=A) == (5 * SCALE,)
    assert of.past(project=B) == (SCALE,)
    assert of.past(project=C) == ()


def test_a_tenants_past_is_that_of_its_projects() -> None:
    queues = [
        after(queue("a", tenant="t", h100=2), h100=4),
        after(queue("b", tenant="t", h100=2), h100=8),
        queue("c", h100=0),
    ]
    of = shares({}, *queues, cohorts=(cohort("t", weight=3),))
    assert of.past(project=A) == (SCALE, SCALE)
    assert of.past(project=B) == (SCALE, 2 * SCALE)
    assert of.past(project=C) == (0, 0)


def test_where_nothing_was_used_before_the_past_is_nothing() -> None:
    assert shares({(A, H100): 2}, queue("a", h100=2)).past(project=A) == (0,)


def test_a_flavor_without_any_quota_left_is_forgotten() -> None:
    assert shares({}, after(queue("a", h100=2), t4=9)).past(project=A) == (0,)


def test_at_each_level_the_share_is_compared_before_the_past() -> None:
    queues = [
        after(queue("a", tenant="t", h100=0), h100=1),
        after(queue("b", tenant="t", h100=0), h100=9),
        after(queue("c", tenant="u", h100=8), h100=5),
    ]
    idle = shares({}, *queues)
    # Both tenants are within their guarantee: u used less than t, whatever a itself used.
    assert sorted([A, B, C], key=lambda p: idle.rank(project=p)) == [C, A, B]
    used = shares({(A, H100): 2, (C, H100): 9}, *queues)
    # t borrows more than u now; in t, b borrows less than a now, though it used more before.
    assert sorted([A, B, C], key=lambda p: used.rank(project=p)) == [C, B, A]


_amounts = st.lists(st.integers(0, 3), min_size=3, max_size=3)


@settings(deadline=None)
@given(used=_amounts, before=_amounts, weights=st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_of_projects_side_by_side_the_past_orders_equal_shares_alone(
    used: list[int], before: list[int], weights: list[int]
) -> None:
    names = (A, B, C)
    made = [queue(name, weight=w, h100=0) for name, w in zip(names, weights, strict=True)]
    rest = queue("rest", h100=6)
    holds = {(name, H100): amount for name, amount in zip(names, used, strict=True)}
    of = shares(holds, rest, *(after(q, h100=s) for q, s in zip(made, before, strict=True)))
    forgetful = shares(holds, rest, *made)
    for name in names:
        assert forgetful.rank(project=name) == of.of(project=name)
    expected = sorted(
        names,
        key=lambda name: (of.of(project=name), of.past(project=name)),
    )
    assert sorted(names, key=lambda name: of.rank(project=name)) == expected
