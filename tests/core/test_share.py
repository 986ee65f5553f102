"""Fair share: what is borrowed, against the fleet, by weight; tenants before projects."""

from scheduler.core.quota import Book
from scheduler.core.share import SCALE, Shares
from scheduler.core.snapshot import CohortView, QueueView
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
