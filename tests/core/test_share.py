"""Fair share: what is borrowed, against the fleet, by weight; tenants before projects."""

from scheduler.core.quota import Book
from scheduler.core.share import SCALE, Shares
from scheduler.core.snapshot import QueueView
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import Quota, queue

A, B, C = ProjectId("a"), ProjectId("b"), ProjectId("c")
H100, T4 = FlavorId("h100"), FlavorId("t4")


def shares(used: dict[tuple[ProjectId, FlavorId], int], *queues: QueueView) -> Shares:
    book = Book(queues=queues)
    for (project, flavor), amount in used.items():
        book.charge(project=project, flavor=flavor, amount_milli=amount * 1000)
    return Shares(queues=queues, book=book)


def test_use_within_nominal_is_no_share() -> None:
    of = shares({(A, H100): 4}, queue("a", h100=4), queue("b", h100=4))
    assert of.of(project=A) == (0, 0)


def test_the_share_is_what_is_borrowed_as_a_part_of_the_fleet() -> None:
    of = shares({(A, H100): 6}, queue("a", h100=4), queue("b", h100=4))
    assert of.of(project=A) == (SCALE // 4, SCALE // 4)


def test_the_largest_share_over_flavors_counts() -> None:
    queues = [queue("a", h100=0, t4=0), queue("b", h100=10, t4=4)]
    of = shares({(A, H100): 2, (A, T4): 2}, *queues)
    assert of.of(project=A)[1] == SCALE // 2


def test_a_heavier_project_has_a_smaller_share_of_the_same() -> None:
    queues = [queue("a", h100=0), queue("b", weight=3, h100=0), queue("c", h100=6)]
    of = shares({(A, H100): 2, (B, H100): 2}, *queues)
    assert of.of(project=A)[1] == 3 * of.of(project=B)[1]


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
    assert of.of(project=A)[1] == SCALE // 2
    of.charge(project=A, flavor=H100, amount_milli=-2000)
    assert of.of(project=A) == (0, 0)


def test_an_unknown_project_has_no_share() -> None:
    of = shares({(C, H100): 5}, queue("a", h100=4))
    of.charge(project=C, flavor=H100, amount_milli=1000)
    assert of.of(project=C) == (0, 0)
