"""What is guaranteed in a tree is had, by whom it is guaranteed to, and nothing goes round."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.core.bounds import firm
from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.laws.tree import Law
from scheduler.core.policy import Policy
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.guarantees import (
    BORROWED,
    OWN,
    gives,
    guarantor,
    of_round,
    tier,
    tier_of,
    tiers,
)
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import Quota, cohort, job, node, pods, queue, runs, snapshot
from tests.core.quota.trees import contested, trees

POLICY = Policy()
H100 = FlavorId("h100")
MANY, FEW = settings(max_examples=300, deadline=None), settings(max_examples=100, deadline=None)


def book(used: Mapping[str, int]) -> Book:
    """lab has 2 of its own and below it vision 1, with a 2 and b 0; c is lab's too, d has 4."""
    made = Book(
        cohorts=[cohort("lab", h100=2), cohort("vision", parent="lab", h100=1)],
        queues=[
            queue("a", tenant="vision", h100=Quota(2, borrow=None)),
            queue("b", tenant="vision", h100=Quota(0, borrow=None)),
            queue("c", tenant="lab", h100=Quota(0, borrow=None)),
            queue("d", h100=Quota(4, borrow=None)),
        ],
    )
    for project, devices in used.items():
        made.charge(project=ProjectId(project), flavor=H100, amount_milli=1000 * devices)
    return made


@pytest.mark.parametrize(
    ("used", "project", "asked", "gives_way", "name"),
    [
        pytest.param({}, "a", 2, 0, "project a", id="its own"),
        pytest.param({}, "a", 3, 0, "cohort vision", id="its own, and its department's"),
        pytest.param({"a": 2}, "b", 1, 0, "cohort vision", id="its department's own"),
        pytest.param({"a": 2}, "b", 2, 0, "cohort lab", id="its tenant's"),
        pytest.param(
            {}, "b", 3, 0, "cohort vision", id="its department's, and what a sibling leaves"
        ),
        pytest.param({}, "a", 6, 0, "the fleet", id="nobody's"),
        pytest.param({"c": 5}, "a", 2, 0, "project a", id="its own, though others are over"),
        pytest.param({"c": 5}, "b", 1, 0, "cohort vision", id="a department's likewise"),
        pytest.param({"c": 5}, "c", 1, 0, "the fleet", id="a tenant's that is used"),
        pytest.param({"a": 3}, "a", 2, 3, "project a", id="when its own work gives way"),
    ],
)
def test_the_guarantor_is_the_nearest_that_has_room(
    used: Mapping[str, int], project: str, asked: int, gives_way: int, name: str
) -> None:
    of = book(used)
    found = guarantor(
        of,
        project=ProjectId(project),
        needs=[(H100, 1000 * asked)],
        gives_way={H100: 1000 * gives_way},
    )
    assert of.cohorts.names[found] == name


def test_a_guarantor_is_below_the_member_that_both_have() -> None:
    """Who takes back from a sibling needs what its own project is guaranteed, and not what is
    above both."""
    made, needs = book({"a": 2}), [(H100, 1000)]
    vision = made.cohorts.paths[made.cohorts.number[ProjectId("b")]][-2]
    assert guarantor(made, project=ProjectId("b"), needs=needs) == vision
    assert guarantor(made, project=ProjectId("b"), needs=needs, below=vision) == FLEET
    own = guarantor(book({}), project=ProjectId("a"), needs=needs, below=vision)
    assert own == made.cohorts.number[ProjectId("a")]
    assert guarantor(made, project=ProjectId("nobody"), needs=needs) == FLEET


def test_a_guarantor_has_room_of_every_flavor() -> None:
    of = Book(
        cohorts=[cohort("lab", h100=1, cpu=8)],
        queues=[queue("a", tenant="lab", h100=2, cpu=Quota(0, borrow=None))],
    )
    needs = [(H100, 2000), (FlavorId("cpu"), 8000)]
    found = guarantor(of, project=ProjectId("a"), needs=needs)
    assert of.cohorts.names[found] == "cohort lab"


def test_who_is_over_in_one_flavor_guarantees_nothing_of_another() -> None:
    """Though what is asked of the one would stay within the project's own nominal."""
    of = Book(
        cohorts=[cohort("lab", h100=1, cpu=0)],
        queues=[
            queue("a", tenant="lab", h100=Quota(0, borrow=None), cpu=Quota(8, lend=0)),
            queue("b", tenant="lab", cpu=Quota(0, borrow=None)),
        ],
    )
    needs, cpu = [(H100, 1000), (FlavorId("cpu"), 1000)], FlavorId("cpu")
    a = ProjectId("a")
    assert of.cohorts.names[guarantor(of, project=a, needs=needs)] == "cohort lab"
    assert firm.rooms(of, project=a, needs=needs) is not None
    of.charge(project=ProjectId("b"), flavor=cpu, amount_milli=1000)
    assert guarantor(of, project=a, needs=needs) == FLEET
    assert firm.rooms(of, project=a, needs=needs) is None


def test_what_leaves_counts_for_no_guarantor() -> None:
    of = book({"a": 2})
    asked = [(H100, 1000)]
    assert of.cohorts.names[guarantor(of, project=ProjectId("a"), needs=asked)] == "cohort vision"
    of.leave(holding=runs("r", "a", "n1/0", "n1/1"))
    assert of.cohorts.names[guarantor(of, project=ProjectId("a"), needs=asked)] == "project a"
    assert of.used(project=ProjectId("a"), flavor=H100) == 2000


def test_tiers_go_from_the_project_to_the_tenant_to_what_is_borrowed() -> None:
    cohorts = book({}).cohorts
    assert tuple(tiers(cohorts)) == (OWN, 2, 1, BORROWED)
    of = {name: number for number, name in enumerate(cohorts.names)}
    a = ProjectId("a")
    found = [
        tier_of(cohorts, project=a, guarantor=of[name])
        for name in ("project a", "cohort vision", "cohort lab", "the fleet")
    ]
    assert found == [OWN, 2, 1, BORROWED]
    assert tier_of(cohorts, project=ProjectId("nobody"), guarantor=FLEET) == BORROWED


@pytest.mark.parametrize(
    ("used", "project", "asked", "found"),
    [
        pytest.param({}, "a", 2, OWN, id="its own"),
        pytest.param({}, "a", 3, 2, id="its department's"),
        pytest.param({"a": 2}, "b", 2, 1, id="its tenant's"),
        pytest.param({}, "a", 6, BORROWED, id="nobody's"),
        pytest.param({}, "nobody", 1, BORROWED, id="of an unknown project"),
    ],
)
def test_work_is_of_the_tier_of_who_guarantees_it(
    used: Mapping[str, int], project: str, asked: int, found: int
) -> None:
    assert tier(book(used), project=ProjectId(project), needs=[(H100, 1000 * asked)]) == found


def test_without_projects_there_is_nobody_above_them() -> None:
    assert tiers(Book(cohorts=[], queues=[]).cohorts) == (OWN, BORROWED)


@pytest.mark.parametrize(
    ("of_tier", "member"),
    [
        (OWN, "project a"),
        (3, "project a"),
        (2, "cohort vision"),
        (1, "cohort lab"),
        (BORROWED, "the fleet"),
    ],
)
def test_who_of_those_above_a_project_is_of_a_round(of_tier: int, member: str) -> None:
    cohorts = book({}).cohorts
    found = of_round(of_tier, cohorts=cohorts, project=ProjectId("a"))
    assert cohorts.names[found] == member


def test_who_gives_is_all_that_is_not_above_both() -> None:
    cohorts = book({}).cohorts

    def names(project: str, to: str) -> tuple[str, list[str]]:
        above, members = gives(cohorts, project=ProjectId(project), to=ProjectId(to))
        return cohorts.names[above], [cohorts.names[member] for member in members]

    assert names("a", "b") == ("cohort vision", ["project a"])
    assert names("a", "c") == ("cohort lab", ["cohort vision", "project a"])
    assert names("a", "d") == ("the fleet", ["cohort lab", "cohort vision", "project a"])
    assert names("c", "a") == ("cohort lab", ["project c"])
    assert names("nobody", "a") == ("the fleet", [])


@MANY
@given(of=trees())
def test_rooms_and_what_is_drawn_are_what_the_law_says(of: Snapshot) -> None:
    made, usage = (
        Book(cohorts=of.cohorts, queues=of.queues),
        dict[tuple[ProjectId, FlavorId], int](),
    )
    for nth, held in enumerate(of.holding):
        key = held.project, held.placements[0].flavor
        usage[key] = usage.get(key, 0) + 1000
        made.charge(project=key[0], flavor=key[1], amount_milli=1000)
        if nth == 3:
            assert made.ledger(H100).drawn  # from here on it is kept up
    law, ledger = Law(made.cohorts, H100, usage), made.ledger(H100)
    for member in range(1, len(made.cohorts.names)):
        assert ledger.drawn[member] == law.drawn(member)
        assert ledger.over(member) == law.used(member) - law.capacity(member)
    for project, number in made.cohorts.number.items():
        path = list(reversed(made.cohorts.paths[number]))
        for asked in (1000, 2000, 4000):
            more = usage | {(project, H100): usage.get((project, H100), 0) + asked}
            after = Law(made.cohorts, H100, more)
            within = [after.used(member) <= after.capacity(member) for member in path]
            own = [after.drawn(member) <= after.nominal(member) for member in path]
            assert _first(ledger.rooms(number), asked) == _first(within, True)
            assert _first(ledger.own_rooms(number), asked) == _first(own, True)


def _first(values: list[int] | list[bool], least: int) -> int | None:
    return next((nth for nth, value in enumerate(values) if value >= least), None)


def test_the_laws_tell_of_what_may_not_be_preempted_and_borrows() -> None:
    of = snapshot(
        nodes=[node("n1", 4)],
        queues=[queue("a", h100=Quota(0, borrow=None)), queue("b", h100=4)],
        pending=[job("w", "a")],
    )
    made = plan(of, POLICY)
    assert len(made.admits) == 1
    assert violations(of, made) == ()
    firm = replace(of, pending=(replace(of.pending[0], preemptible=False),))
    assert violations(firm, made) == ("w may not be preempted, and borrows",)


def test_the_laws_tell_of_who_reclaims_beyond_its_guarantee() -> None:
    of = snapshot(
        nodes=[node("n1", 2)],
        queues=[queue("a", h100=2), queue("b", h100=Quota(0, borrow=None))],
        pending=[job("w", "a", pods(2))],
        holding=[runs("r0", "b", "n1/0"), runs("r1", "b", "n1/1")],
    )
    made = plan(of, POLICY)
    assert len(made.preempts) == 2
    assert violations(of, made) == ()
    less = replace(of, queues=(queue("a", h100=1), queue("c", h100=1), of.queues[1]))
    assert violations(less, made) == ("w reclaims beyond what is guaranteed to it",)


def test_who_reclaims_counts_on_nothing_that_is_freed_for_another() -> None:
    """Without b's gang, which goes for a, the lab would guarantee w what it asks for; but b may
    be back before it. So w gets its own nominal, by what is c's, and d keeps what it borrows."""
    of = snapshot(
        nodes=[node("n1", 5)],
        cohorts=[cohort("lab", h100=2)],
        queues=[
            queue("a", tenant="lab", h100=1),
            queue("b", tenant="lab", h100=Quota(0, borrow=None)),
            queue("c", tenant="lab", h100=Quota(2, borrow=None)),
            queue("d", h100=Quota(0, borrow=None)),
        ],
        pending=[job("first", "a"), job("w", "c", pods(2), priority=1)],
        holding=[
            runs("gang", "b", "n1/0", "n1/1"),
            runs("own0", "c", "n1/2"),
            runs("own1", "c", "n1/3", since_s=9),
            runs("lent", "d", "n1/4", priority=1),
        ],
    )
    made = plan(of, POLICY)
    assert violations(of, made) == ()
    assert {(p.victim, p.preemptor) for p in made.preempts} == {("gang", "first"), ("own0", "w")}


def test_own_work_goes_for_what_it_gives_and_not_for_a_reclaim_that_is_not_made() -> None:
    of = contested(265683)
    made = plan(of, POLICY)
    assert violations(of, made) == ()
    assert [p.rule for p in made.preempts if p.preemptor == "w0"] == [PreemptRule.PRIORITY]


def test_for_what_a_project_keeps_nobody_goes_because_others_are_over() -> None:
    """After a cut: d is over all that anybody lends, which is nothing to a."""
    of = snapshot(
        nodes=[node("n1", 4)],
        queues=[queue("a", h100=Quota(1, lend=0)), queue("d", h100=1)],
        pending=[job("w", "a")],
        holding=[runs(f"r{i}", "d", f"n1/{i}", since_s=i) for i in range(4)],
    )
    assert [p.victim for p in plan(of, POLICY).preempts] == ["r0"]
