"""The walls under concurrency: real threads, connections and transactions."""

from collections import Counter
from functools import partial

import pytest
from django.db.models import F, Sum

from clusters.models import DeviceSlice, Flavor
from scheduler.models import Placement, PlacementSpan
from tenants.models import Charge, Quota, Tenant
from tests.constraints.attacks.held import RELEASED
from tests.constraints.moves import Sql, Statement, insert_like, update
from tests.constraints.racing import race
from tests.constraints.rows import NOON, make

pytestmark = pytest.mark.django_db(transaction=True)

CHECK, EXCLUSION, DEADLOCK, SERIALIZATION = "23514", "23P01", "40P01", "40001"
THREADS = 8
ROUNDS = 12
READ_COMMITTED = "READ COMMITTED"
ISOLATIONS = pytest.mark.parametrize(
    "isolation", [READ_COMMITTED, "REPEATABLE READ", "SERIALIZABLE"]
)


def _quotas(*, nominal: int, borrowing: int | None) -> list[Quota]:
    flavor = make(Flavor)
    return [
        make(Quota, flavor=flavor, nominal_milli=nominal, borrowing_limit_milli=borrowing)
        for _ in range(4)
    ]


def _span_and_pods_beside_it() -> tuple[PlacementSpan, Placement, Placement]:
    """A span that was released, and two pods on its node that hold nothing."""
    was = make(PlacementSpan, **RELEASED)
    node = was.placement.node
    return was, make(Placement, node=node), make(Placement, node=node)


def _grow(quota: Quota) -> Statement:
    return update(quota, used_milli=Sql("used_milli + 1000"))


def test_eight_writers_never_take_a_project_past_its_limit_nor_the_fleet_past_its_capacity() -> (
    None
):
    quotas = _quotas(nominal=3250, borrowing=3000)
    answers: Counter[str] = Counter()
    for _ in range(ROUNDS):
        answers.update(race([partial(_grow, quotas[n % 4]) for n in range(THREADS)]))
    used = dict(Quota.objects.values_list("id", "used_milli"))
    assert max(used.values()) <= 3250 + 3000
    # Neither more nor less: what the walls let through adds up to the last thousandth.
    assert sum(used.values()) == 4 * 3250 == answers[""] * 1000
    assert answers.keys() == {"", CHECK}


@ISOLATIONS
def test_two_projects_never_borrow_the_same_idle_quota(isolation: str) -> None:
    for _ in range(ROUNDS):
        lender, *borrowers = _quotas(nominal=1000, borrowing=None)
        Quota.objects.filter(flavor=lender.flavor).exclude(id=lender.id).update(used_milli=1000)
        race([partial(_grow, quota) for quota in borrowers], isolation=isolation)
        held = Quota.objects.filter(flavor=lender.flavor).aggregate(all=Sum("used_milli"))["all"]
        assert held == 4000 or (held < 4000 and isolation != READ_COMMITTED)


@ISOLATIONS
def test_of_two_overlapping_spans_exactly_one_commits(isolation: str) -> None:
    for _ in range(4):  # each may wait a second for PostgreSQL to break a deadlock
        was, first, second = _span_and_pods_beside_it()
        answers = race(
            [
                partial(insert_like, was, placement_id=first.pk, released_at=None),
                partial(insert_like, was, placement_id=second.pk, span="[3,5)", released_at=None),
            ],
            isolation=isolation,
        )
        assert sorted(answers)[0] == ""
        assert sorted(answers)[1] in {EXCLUSION, DEADLOCK, SERIALIZATION}
        assert PlacementSpan.objects.filter(device=was.device, released_at=None).count() == 1


def test_spans_that_only_touch_both_commit() -> None:
    was, first, second = _span_and_pods_beside_it()
    answers = race(
        [
            partial(insert_like, was, placement_id=first.pk, span="[0,4)", released_at=None),
            partial(insert_like, was, placement_id=second.pk, span="[4,8)", released_at=None),
        ]
    )
    assert answers == ["", ""]


@ISOLATIONS
def test_no_span_is_added_to_a_placement_while_it_is_released(isolation: str) -> None:
    for _ in range(ROUNDS):
        was, pod, _other = _span_and_pods_beside_it()
        answers = race(
            [
                partial(insert_like, was, placement_id=pod.pk, released_at=None),
                partial(update, pod, released_at=NOON),
            ],
            isolation=isolation,
        )
        assert answers.count("") <= 1
        assert not PlacementSpan.objects.filter(
            released_at=None, placement__released_at__isnull=False
        ).exists()


@ISOLATIONS
def test_eight_refunds_never_give_back_more_than_was_charged(isolation: str) -> None:
    for _ in range(ROUNDS):
        charge = make(Charge, amount=3)
        refund = partial(insert_like, charge, corrects_id=charge.pk, amount=-1)
        answers = race([refund] * THREADS, isolation=isolation)
        assert answers.count("") == (3 if isolation == READ_COMMITTED else 0)


def test_of_two_overlapping_slices_exactly_one_commits() -> None:
    gone = make(DeviceSlice, gone_at=NOON)
    answers = race([partial(insert_like, gone, gone_at=None) for _ in range(2)])
    assert sorted(answers)[0] == ""
    assert sorted(answers)[1] in {EXCLUSION, DEADLOCK, SERIALIZATION}


@ISOLATIONS
def test_two_moves_never_make_a_cycle_together(isolation: str) -> None:
    """Each move is legal alone: a under b, and b under a."""
    for _ in range(ROUNDS):
        a, b = make(Tenant), make(Tenant)
        race(
            [partial(update, a, parent_id=b.pk), partial(update, b, parent_id=a.pk)],
            isolation=isolation,
        )
        assert not Tenant.objects.filter(id=a.id, parent__parent=F("id")).exists()
