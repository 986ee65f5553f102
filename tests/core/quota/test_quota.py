"""How much more a project may take: nominal, borrowing, lending; and the laws behind it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.laws import invariants
from scheduler.core.plan import Admit, Place, Plan
from scheduler.core.quota.quota import Book, amount_milli
from scheduler.core.snapshot import (
    CohortView,
    HeldView,
    HoldingView,
    QueueView,
    QuotaView,
    Snapshot,
)
from scheduler.core.units import (
    ClusterId,
    CohortId,
    FlavorId,
    NodeId,
    PlacementId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.core.build import Quota, cohort, cpu_pods, job, pods, queue

H100 = FlavorId("h100")
Tree = tuple[CohortView, ...]


def book(used: dict[str, float], *queues: QueueView, cohorts: Tree = ()) -> Book:
    made = Book(cohorts=cohorts, queues=queues)
    for project, amount in used.items():
        made.charge(project=ProjectId(project), flavor=H100, amount_milli=round(amount * 1000))
    return made


@pytest.mark.parametrize(
    ("a", "b", "used", "available"),
    [
        pytest.param(Quota(4), Quota(4), {}, 4, id="its nominal, when it may not borrow"),
        pytest.param(Quota(4), Quota(4), {"a": 3}, 1, id="what is left of nominal"),
        pytest.param(Quota(4, borrow=2), Quota(4), {}, 6, id="nominal and the borrowing limit"),
        pytest.param(Quota(4, borrow=None), Quota(4), {}, 8, id="all, without a limit"),
        pytest.param(Quota(4, borrow=None), Quota(4), {"b": 3}, 5, id="what others leave"),
        pytest.param(
            Quota(4, borrow=None), Quota(4, lend=1), {}, 5, id="no more than others lend"
        ),
        pytest.param(
            Quota(4, borrow=None),
            Quota(4, lend=1),
            {"b": 2},
            5,
            id="kept quota is kept, used or not",
        ),
        pytest.param(
            Quota(4, borrow=None), Quota(4, lend=0), {"b": 4}, 4, id="nothing when nothing is lent"
        ),
        pytest.param(
            Quota(4),
            Quota(4, borrow=None),
            {"b": 6},
            2,
            id="less than nominal while others borrow it",
        ),
        pytest.param(
            Quota(4, lend=2),
            Quota(4, borrow=None),
            {"b": 6},
            2,
            id="at least what it does not lend",
        ),
        pytest.param(Quota(4), Quota(4), {"a": 6}, -2, id="negative after its quota was cut"),
        pytest.param(
            Quota(4), Quota(4), {"b": 10}, -2, id="negative after the quota of another was cut"
        ),
        pytest.param(
            Quota(4, lend=1),
            Quota(4),
            {"b": 10},
            3,
            id="its kept quota, even while the others are over what is left",
        ),
        pytest.param(Quota(0, borrow=3), Quota(4), {}, 3, id="borrowed only, without nominal"),
    ],
)
def test_a_project_may_take(a: Quota, b: Quota, used: dict[str, float], available: float) -> None:
    made = book(used, queue("a", h100=a), queue("b", h100=b))
    assert made.available(project=ProjectId("a"), flavor=H100) == available * 1000


def test_a_project_may_take_less_once_another_was_charged_and_a_copy_more() -> None:
    of = book({}, queue("a", h100=Quota(4, borrow=None)), queue("b", h100=Quota(4)))
    a, b = ProjectId("a"), ProjectId("b")
    before, twin = of.available(project=a, flavor=H100), of.copy()
    of.charge(project=b, flavor=H100, amount_milli=3000)
    left = [each.available(project=a, flavor=H100) for each in (of, twin)]
    assert (before, left) == (8000, [5000, 8000])


def test_who_is_beyond_its_guarantee_is_told_as_it_is_charged() -> None:
    made = book({"a": 5, "b": 4}, queue("a", h100=4), queue("b", h100=Quota(4)))
    a, b = (made.cohorts.number[ProjectId(name)] for name in "ab")
    ledger = made.ledger(H100)
    assert list(ledger.beyond) == [0, a]
    made.charge(project=ProjectId("b"), flavor=H100, amount_milli=1)
    assert list(ledger.beyond) == [0, a, b]
    twin = ledger.copy()
    made.charge(project=ProjectId("a"), flavor=H100, amount_milli=-2000)
    assert list(ledger.beyond) == [b]
    assert list(twin.beyond) == [0, a, b]


def test_a_project_without_a_quota_row_may_take_nothing() -> None:
    made = book({}, queue("a", t4=4), queue("b", h100=4))
    assert made.available(project=ProjectId("a"), flavor=H100) is None
    assert made.ceiling(project=ProjectId("a"), flavor=H100) is None
    assert made.available(project=ProjectId("nobody"), flavor=H100) is None


@pytest.mark.parametrize(
    ("a", "b", "ceiling"),
    [
        (Quota(4), Quota(4), 4),
        (Quota(4, borrow=2), Quota(4), 6),
        (Quota(4, borrow=None), Quota(4), 8),
        (Quota(4, borrow=None), Quota(4, lend=1), 5),
        (Quota(4, borrow=9), Quota(4, lend=0), 4),
    ],
)
def test_the_ceiling_is_what_it_could_hold_alone(a: Quota, b: Quota, ceiling: int) -> None:
    made = book({"a": 1, "b": 3}, queue("a", h100=a), queue("b", h100=b))
    assert made.ceiling(project=ProjectId("a"), flavor=H100) == ceiling * 1000


def test_a_pod_is_charged_its_gpus_alone_and_cores_only_without_any() -> None:
    assert amount_milli(pod_set=pods(gpus=4, cores=32)) == 4000
    assert amount_milli(pod_set=pods(share=0.25, flavors="t4share")) == 250
    assert amount_milli(pod_set=cpu_pods(cores=1.5)) == 1500


def test_what_is_held_without_a_queue_is_counted_all_the_same() -> None:
    made = book({"gone": 2}, queue("a", h100=4))
    gone = ProjectId("gone")
    assert made.used(project=gone, flavor=H100) == 2000
    made.charge(project=gone, flavor=H100, amount_milli=-500)
    assert made.used(project=gone, flavor=H100) == 1500
    assert made.used(project=gone, flavor=FlavorId("t4")) == 0
    assert made.usage() == {(gone, H100): 1500}
    assert made.available(project=ProjectId("a"), flavor=H100) == 4000


@pytest.mark.parametrize("project", ["a", "gone"])
def test_without_a_quota_row_nothing_is_guaranteed_and_nothing_may_be_borrowed(
    project: str,
) -> None:
    made = book({}, queue("a", t4=4), queue("b", h100=4))
    assert made.nominal(project=ProjectId(project), flavor=H100) == 0
    assert made.borrowing_limit(project=ProjectId(project), flavor=H100) == 0


def test_bounds_are_its_row_and_nothing_but_what_is_used_without_one() -> None:
    rows = queue("a", h100=Quota(4, borrow=2)), queue("b", h100=Quota(3)), queue("c", cpu=1)
    made = book({"a": 1, "c": 2, "nobody": 1}, *rows)
    told = {p: made.bounds(project=ProjectId(p), flavor=H100) for p in ("a", "b", "c", "nobody")}
    assert told["a"] == (4000, 2000, 6000, 1000)
    assert told["b"] == (3000, 0, 3000, 0)
    assert told["c"] == (0, 0, 0, 2000)
    assert told["nobody"] == (0, 0, 0, 1000)
    limits = [made.borrowing_limit(project=ProjectId(p), flavor=H100) for p in ("a", "b", "c")]
    assert limits == [2000, 0, 0]
    free = book({}, queue("a", h100=Quota(4, borrow=None)))
    assert free.borrowing_limit(project=ProjectId("a"), flavor=H100) is None
    assert free.bounds(project=ProjectId("a"), flavor=H100)[1] is None
    assert not made.is_lawful(project=ProjectId("c"), flavor=H100)
    assert made.flavors() == {H100}
    assert book({"nobody": 1}).flavors() == {H100}


def test_a_departments_limits_bound_all_of_its_projects_together() -> None:
    tree = (cohort("lab", h100=Quota(0, borrow=1, lend=2)),)
    queues = [
        queue("a", tenant="lab", h100=Quota(2, borrow=None)),
        queue("b", tenant="lab", h100=Quota(2, borrow=None)),
        queue("c", h100=Quota(4, borrow=None)),
    ]
    empty = book({}, *queues, cohorts=tree)
    assert empty.available(project=ProjectId("a"), flavor=H100) == 5000
    assert empty.available(project=ProjectId("c"), flavor=H100) == 6000
    used = book({"a": 3}, *queues, cohorts=tree)
    assert used.available(project=ProjectId("b"), flavor=H100) == 2000
    assert used.available(project=ProjectId("c"), flavor=H100) == 5000
    assert used.ceiling(project=ProjectId("b"), flavor=H100) == 5000


def test_a_departments_own_quota_is_for_its_projects_first() -> None:
    tree = (cohort("lab", h100=Quota(4, lend=0)),)
    queues = [
        queue("a", tenant="lab", h100=Quota(0, borrow=None)),
        queue("c", h100=Quota(1, None)),
    ]
    made = book({}, *queues, cohorts=tree)
    assert made.available(project=ProjectId("a"), flavor=H100) == 4000
    assert made.available(project=ProjectId("c"), flavor=H100) == 1000


@pytest.mark.parametrize(
    "tree",
    [
        (cohort("x", parent="y"), cohort("y", parent="x")),
        (cohort("x", parent="x"),),
        (cohort("x", parent="nowhere"),),
        (),
    ],
)
def test_a_tree_that_contradicts_itself_hangs_below_the_fleet(tree: Tree) -> None:
    queues = [queue("a", tenant="x", h100=Quota(2, borrow=None)), queue("b", h100=4)]
    made = Book(cohorts=tree, queues=queues)
    assert made.available(project=ProjectId("a"), flavor=H100) == 6000


_limit = st.none() | st.integers(0, 6)
_row = st.tuples(st.integers(0, 6), _limit, _limit)
_steps = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=12)


@st.composite
def _trees(draw: st.DrawFn) -> tuple[Tree, list[QueueView]]:
    """Up to three cohorts in any shape, with and without quotas, and up to four projects."""
    cohorts: list[CohortView] = []
    for i in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from([None, *(c.id for c in cohorts)]))
        quotas = tuple(QuotaView(H100, *row) for row in draw(st.lists(_row, max_size=1)))
        cohorts.append(CohortView(CohortId(f"k{i}"), parent, 1, quotas))
    within = st.sampled_from([None, *(c.id for c in cohorts)])
    rows = draw(st.lists(st.tuples(within, _row), min_size=1, max_size=4))
    queues = [
        QueueView(ProjectId(str(i)), cohort, 1, (QuotaView(H100, *row),))
        for i, (cohort, row) in enumerate(rows)
    ]
    return tuple(cohorts), queues


def _cut(queues: list[QueueView], cuts: list[int]) -> list[QueueView]:
    return [
        replace(queue, quotas=(replace(q, nominal_milli=min(q.nominal_milli, cut)),))
        for queue, cut in zip(queues, cuts, strict=False)
        for q in queue.quotas
    ]


def _lawful(tree: Tree, queues: list[QueueView], used: list[int], project: int, more: int) -> bool:
    """By the definition in `invariants`, which shares no arithmetic with the book."""

    def plan_of(amount: int) -> Plan:
        place = Place(PodSetId("s"), 0, NodeId("n"), H100, amount, 0, 0)
        return Plan(admits=(Admit(WorkloadId("w"), ClusterId("c"), (place,)),))

    held = HeldView(PlacementId("h"), PodSetId("s"), NodeId("n"), H100, 0, 0, 0)
    holding = tuple(
        HoldingView(
            WorkloadId(f"h{i}"),
            queue.project,
            ClusterId("c"),
            0,
            False,
            0,
            (replace(held, amount_milli=amount),),
        )
        for i, (queue, amount) in enumerate(zip(queues, used, strict=True))
    )
    pending = job("w", queues[project].project)
    of = Snapshot(0, (), (), tuple(queues), (pending,), holding, tree)
    return not list(invariants.quotas(of, plan_of(more)))


@settings(deadline=None)
@given(made=_trees(), steps=_steps, cuts=st.lists(st.integers(0, 6), min_size=4, max_size=4))
def test_available_is_the_most_that_the_law_admits(
    made: tuple[Tree, list[QueueView]], steps: list[tuple[int, int]], cuts: list[int]
) -> None:
    """Usage grows lawfully, quotas are cut, and what is told is checked by trying each amount."""
    tree, queues = made
    used = [0] * len(queues)
    for project, more in steps:
        if project < len(queues) and _lawful(tree, queues, used, project, more):
            used[project] += more
    queues = _cut(queues, cuts)
    kept = Book(cohorts=tree, queues=queues)
    for of, amount in zip(queues, used, strict=True):
        kept.charge(project=of.project, flavor=H100, amount_milli=amount)
    for i, of in enumerate(queues):
        available = kept.available(project=of.project, flavor=H100)
        assert available is not None
        admissible = [more for more in range(1, 40) if _lawful(tree, queues, used, i, more)]
        assert max(0, available) == max(admissible, default=0)
        for more in range(1, 10):
            kept.charge(project=of.project, flavor=H100, amount_milli=more)
            assert kept.is_lawful(project=of.project, flavor=H100) == (more in admissible)
            kept.charge(project=of.project, flavor=H100, amount_milli=-more)


@settings(deadline=None)
@given(made=_trees(), steps=_steps)
def test_what_is_charged_and_given_back_leaves_nothing_behind(
    made: tuple[Tree, list[QueueView]], steps: list[tuple[int, int]]
) -> None:
    tree, queues = made
    book, fresh = Book(cohorts=tree, queues=queues), Book(cohorts=tree, queues=queues)
    done = [(queues[p].project, more) for p, more in steps if p < len(queues)]
    for project, more in done:
        book.charge(project=project, flavor=H100, amount_milli=more)
    for project, more in reversed(done):
        book.charge(project=project, flavor=H100, amount_milli=-more)
    assert book.usage() == {}
    for of in queues:
        left = fresh.available(project=of.project, flavor=H100)
        assert book.available(project=of.project, flavor=H100) == left
