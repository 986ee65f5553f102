"""How much more a project may take: nominal, borrowing, lending; and the laws behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.core.quota import Book, amount_milli
from scheduler.core.snapshot import QueueView, QuotaView
from scheduler.core.units import FlavorId, ProjectId, TenantId
from tests.core.build import Quota, cpu_pods, pods, queue

H100 = FlavorId("h100")


def book(used: dict[str, float], *queues: QueueView) -> Book:
    made = Book(queues=queues)
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
            -5,
            id="not even kept quota while over the total",
        ),
        pytest.param(Quota(0, borrow=3), Quota(4), {}, 3, id="borrowed only, without nominal"),
    ],
)
def test_a_project_may_take(a: Quota, b: Quota, used: dict[str, float], available: float) -> None:
    made = book(used, queue("a", h100=a), queue("b", h100=b))
    assert made.available(project=ProjectId("a"), flavor=H100) == available * 1000


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


_limit = st.none() | st.integers(0, 6)
_quotas = st.lists(st.tuples(st.integers(0, 6), _limit, _limit), min_size=1, max_size=4)
_steps = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=12)


def _claimed(quotas: list[tuple[int, int | None, int | None]], used: list[int]) -> int:
    kept = (n - min(n, n if lend is None else lend) for n, _, lend in quotas)
    return sum(max(u, k) for u, k in zip(used, kept, strict=True))


@given(quotas=_quotas, steps=_steps, cuts=st.lists(st.integers(0, 6), min_size=4, max_size=4))
def test_available_is_the_most_that_the_laws_of_the_database_admit(
    quotas: list[tuple[int, int | None, int | None]],
    steps: list[tuple[int, int]],
    cuts: list[int],
) -> None:
    """Usage grows lawfully, quotas are cut, and what is told is checked by trying each amount."""
    used = [0] * len(quotas)

    def lawful(project: int, more: int) -> bool:
        nominal, borrow, _ = quotas[project]
        after = [*used]
        after[project] += more
        within = borrow is None or after[project] <= nominal + borrow
        return within and _claimed(quotas, after) <= sum(n for n, _, _ in quotas)

    for project, more in steps:
        if project < len(quotas) and lawful(project, more):
            used[project] += more
    quotas = [(min(n, c), b, lend) for (n, b, lend), c in zip(quotas, cuts, strict=False)]
    queues = [
        QueueView(ProjectId(str(i)), TenantId("t"), 1, (QuotaView(H100, n, b, lend),))
        for i, (n, b, lend) in enumerate(quotas)
    ]
    made = Book(queues=queues)
    for i, amount in enumerate(used):
        made.charge(project=ProjectId(str(i)), flavor=H100, amount_milli=amount)
    for i in range(len(quotas)):
        available = made.available(project=ProjectId(str(i)), flavor=H100)
        assert available is not None
        admissible = [more for more in range(1, 40) if lawful(i, more)]
        assert max(0, available) == max(admissible, default=0)
