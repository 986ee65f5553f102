"""One flavor over the tree, against the law: what more would do, and what is awaited.

Nominal that is awaited: nobody below the member whose own it is takes any of it meanwhile.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.laws.tree import Law
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.quota import Book
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.quota.trees import PARENTS, contested, trees

MANY = settings(max_examples=300, deadline=None)
H100 = FlavorId("h100")
MEMBERS = st.frozensets(st.integers(1, 8), max_size=4)
"""By their numbers in a tree: three cohorts and five projects."""


def charged(of: Snapshot) -> tuple[Book, dict[tuple[ProjectId, FlavorId], int]]:
    book = Book(cohorts=of.cohorts, queues=of.queues)
    usage = dict[tuple[ProjectId, FlavorId], int]()
    for held in of.holding:
        book.charge(project=held.project, flavor=H100, amount_milli=1000)
        usage[held.project, H100] = usage.get((held.project, H100), 0) + 1000
    return book, usage


def path_of(book: Book, project: ProjectId) -> list[int]:
    """The members from the project upwards, without the fleet."""
    return list(reversed(book.cohorts.paths[book.cohorts.number[project]]))


@MANY
@given(of=trees(), project=st.sampled_from(sorted(PARENTS)))
def test_more_is_told_of_each_member_whose_use_it_raises(of: Snapshot, project: ProjectId) -> None:
    book, usage = charged(of)
    number, had = book.cohorts.number[project], usage.get((project, H100), 0)
    now = Law(book.cohorts, H100, usage)
    for asked in (-1000, 0, 1, 500, 1000, 3000):
        after = Law(book.cohorts, H100, usage | {(project, H100): had + max(0, asked)})
        assert list(book.ledger(H100).law(number, asked)) == [
            (member, after.used(member), after.most(member))
            for member in (*path_of(book, project), FLEET)
            if after.used(member) > now.used(member)
        ]


@MANY
@given(of=trees(), awaited=MEMBERS, project=st.sampled_from(sorted(PARENTS)))
def test_what_more_would_draw_on_what_is_awaited_is_what_the_law_says(
    of: Snapshot, awaited: frozenset[int], project: ProjectId
) -> None:
    book, usage = charged(of)
    ledger = book.ledger(H100)
    ledger.awaited |= awaited
    number, had = book.cohorts.number[project], usage.get((project, H100), 0)
    for asked in (0, 500, 1000, 3000):
        after = Law(book.cohorts, H100, usage | {(project, H100): had + asked})
        assert list(ledger.awaited_law(number, asked)) == [
            (member, after.drawn(member), after.nominal(member))
            for member in path_of(book, project)
            if member in awaited
        ]


@MANY
@given(of=trees(), awaited=MEMBERS, project=st.sampled_from(sorted(PARENTS)))
def test_available_is_the_most_that_leaves_what_is_awaited(
    of: Snapshot, awaited: frozenset[int], project: ProjectId
) -> None:
    book, usage = charged(of)
    freely = book.available(project=project, flavor=H100)
    assert freely is not None
    book.ledger(H100).awaited |= awaited
    may = book.available(project=project, flavor=H100)
    assert may is not None
    had = usage.get((project, H100), 0)

    def leaves(more: int) -> bool:
        law = Law(book.cohorts, H100, usage | {(project, H100): had + more})
        path = [member for member in path_of(book, project) if member in awaited]
        return all(law.drawn(member) <= law.nominal(member) for member in path)

    assert may <= freely
    if may >= 0:
        assert leaves(may)
        assert may == freely or not leaves(may + 1)
    elif may < freely:
        assert not leaves(0)
    book.charge(project=project, flavor=H100, amount_milli=1000)
    if freely >= 1000:
        assert book.is_lawful(project=project, flavor=H100) == leaves(1000)


@MANY
@given(of=trees(), project=st.sampled_from(sorted(PARENTS)))
def test_available_is_the_most_by_which_no_member_passes_what_it_may_use(
    of: Snapshot, project: ProjectId
) -> None:
    book, usage = charged(of)
    may = book.available(project=project, flavor=H100)
    assert may is not None
    now, had = Law(book.cohorts, H100, usage), usage.get((project, H100), 0)

    def is_lawful(more: int) -> bool:
        after = Law(book.cohorts, H100, usage | {(project, H100): had + more})
        members = (*path_of(book, project), FLEET)
        raised = [member for member in members if after.used(member) > now.used(member)]
        return all(
            most is None or after.used(member) <= most
            for member in raised
            for most in (after.most(member),)
        )

    assert is_lawful(max(0, may))
    assert not is_lawful(max(0, may) + 1)


@MANY
@given(of=trees(), project=st.sampled_from(sorted(PARENTS)))
def test_guaranteed_is_what_it_may_take_without_borrowing_while_nobody_else_holds_any(
    of: Snapshot, project: ProjectId
) -> None:
    book = Book(cohorts=of.cohorts, queues=of.queues)
    may = book.available(project=project, flavor=H100)
    own = book.ledger(H100).own_rooms(book.cohorts.number[project])
    assert may is not None
    assert book.ceiling(project=project, flavor=H100) == may
    assert book.guaranteed(project=project, flavor=H100) == min(may, max(own))
    assert book.guaranteed(project=ProjectId("nobody"), flavor=H100) == 0


@MANY
@given(
    of=trees(),
    charges=st.lists(st.tuples(st.booleans(), st.sampled_from(sorted(PARENTS))), max_size=6),
)
def test_a_copy_and_the_original_are_charged_apart(
    of: Snapshot, charges: list[tuple[bool, ProjectId]]
) -> None:
    """Whatever each had worked out before."""
    book, usage = charged(of)
    for held in of.holding[:2]:
        book.ledger(H100).leave(book.cohorts.number[held.project], 1000)
    assert book.ledger(H100).beyond is not None
    assert book.ledger(H100).drawn is not None
    twin = book.copy()
    for to_twin, project in charges:
        (twin if to_twin else book).charge(project=project, flavor=H100, amount_milli=1000)
    for to_twin, one in ((False, book), (True, twin)):
        more = usage.copy()
        for at, project in charges:
            if at is to_twin:
                more[project, H100] = more.get((project, H100), 0) + 1000
        law, ledger = Law(one.cohorts, H100, more), one.ledger(H100)
        members = range(len(ledger.used))
        assert ledger.used == [law.used(member) for member in members]
        over = {m for m in members if law.used(m) > law.capacity(m)}
        assert ledger.beyond == over
        for held in of.holding[:2]:
            more[held.project, H100] -= 1000
        stays = Law(one.cohorts, H100, more)
        assert ledger.lasting == [stays.used(member) for member in members]
        assert ledger.drawn == [stays.drawn(member) for member in members]


def test_those_have_moved_who_were_charged_and_all_above_them() -> None:
    of = contested(1)
    book, _ = charged(of)
    ledger = book.ledger(H100)
    assert list(ledger.moved()) == list(range(len(ledger.used)))
    assert ledger.moved() == []
    for project in ("a", "a", "e"):
        book.charge(project=ProjectId(project), flavor=H100, amount_milli=1000)
    paths = [path_of(book, ProjectId(project)) for project in ("a", "e")]
    assert sorted(ledger.moved()) == sorted({FLEET, *paths[0], *paths[1]})


def test_what_is_awaited_in_a_copy_is_not_in_the_original() -> None:
    book = Book(cohorts=(), queues=())
    twin = book.ledger(H100).copy()
    twin.awaited.add(1)
    assert not book.ledger(H100).awaited


@MANY
@given(of=trees(), leave=st.integers(0, 5), project=st.sampled_from(sorted(PARENTS)))
def test_for_a_while_a_project_is_as_if_it_held_nothing(
    of: Snapshot, leave: int, project: ProjectId
) -> None:
    """Some of it, and of others', on its way back; then all is as it was."""
    others = tuple(held for held in of.holding if held.project != project)
    book, _ = charged(of)
    bare, _ = charged(replace(of, holding=others))
    for held in of.holding[:leave]:
        for each in (book, bare) if held in others else (book,):
            each.leave(holding=held)
    ledger, than, before = book.ledger(H100), bare.ledger(H100), read(book)
    with book.without(project=project, flavors=[H100]):
        assert read(book) == read(bare)
        assert (ledger.used, ledger.lasting, ledger.drawn) == (than.used, than.lasting, than.drawn)
    assert read(book) == before


def read(book: Book) -> list[object]:
    """All that is told of each member."""
    ledger = book.ledger(H100)
    return [
        (ledger.available(n), ledger.over(n), n in ledger.beyond, ledger.rooms(n))
        for n in range(1, len(ledger.used))
    ]
