"""What is held, borrowed and paid in days that are played again, as the reader is told."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor, FlavorKind
from scheduler.services import replays
from scheduler.services.replay_uses import Borrowed, Used
from scheduler.services.replays import Replayed
from tenants.access import actor_for
from tenants.models import Project, Quota, Rate, Role, Scope, Token
from tenants.policy import Rules
from tenants.services.quotas import Amounts
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.scheduler.played import HOUR, NOW, four, ran, told

pytestmark = pytest.mark.usefixtures("one_moment")

FOUR_HOURS = 4000 * 3600
"""Of all four devices for one hour."""


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    """Both want all of them for an hour, one after the other, and borrow them."""
    flavor = four(cast)
    ran(cast.detection, cast.ben, flavor)
    ran(cast.dialogue, cast.ben, flavor, came=AT + 2 * HOUR)
    return flavor


def lends_to_detection(cast: Cast, h100: Flavor, nominal_milli: int = 3000) -> Replayed:
    return replays.of_quota(
        actor=actor_for(user=cast.oz), project=cast.detection, flavor=h100, at=NOW,
        amounts=Amounts(
            nominal_milli=nominal_milli, borrowing_limit_milli=None, lending_limit_milli=None
        ),
    )  # fmt: skip


def test_hours_are_told_of_each_flavor_and_cost_what_they_cost_now(
    cast: Cast, h100: Flavor
) -> None:
    factories.rate(h100, "9.99", during=DateTimeTZRange(AT - timedelta(days=9), AT))  # was
    factories.rate(h100, "2.50", during=DateTimeTZRange(AT, None))
    found = lends_to_detection(cast, h100)
    ten = Decimal("10.000000")
    for project in (cast.detection, cast.dialogue):
        assert told(found, project).used == (Used(h100.name, FOUR_HOURS, FOUR_HOURS, ten, ten),)
    assert told(found, cast.detection).borrowed == (
        Borrowed(h100.name, FOUR_HOURS, FOUR_HOURS // 4),
    )
    assert told(found, cast.dialogue).borrowed == (Borrowed(h100.name, FOUR_HOURS, FOUR_HOURS),)
    assert found.currency == "EUR"


def test_a_clusters_own_price_goes_before_the_one_of_any(cast: Cast, h100: Flavor) -> None:
    factories.rate(h100, "2.50")
    factories.rate(h100, "0.000001", cluster=Cluster.objects.get())
    [used] = told(lends_to_detection(cast, h100), cast.detection).used
    assert used.after_cost == Decimal("0.000004")


def test_what_has_no_price_in_the_installations_currency_costs_nobody_knows_what(
    cast: Cast, h100: Flavor
) -> None:
    [used] = told(lends_to_detection(cast, h100), cast.detection).used
    assert (used.before_cost, used.after_cost) == (None, None)
    Rate.objects.create(
        flavor=h100, price_per_hour=1, currency="USD", during=DateTimeTZRange(AT, None)
    )
    [used] = told(lends_to_detection(cast, h100), cast.detection).used
    assert (used.before_cost, used.after_cost) == (None, None)


def test_what_a_policy_refuses_is_neither_held_nor_paid(cast: Cast, h100: Flavor) -> None:
    factories.rate(h100)
    found = replays.of_policy(
        actor=actor_for(user=cast.ada), of=cast.detection, rules=Rules(max_pods=1, images=("x",)),
        at=NOW,
    )  # fmt: skip
    mine = told(found, cast.detection)
    assert mine.used == (Used(h100.name, FOUR_HOURS, 0, Decimal(10), Decimal(0)),)
    assert mine.borrowed == (Borrowed(h100.name, FOUR_HOURS, 0),)


def test_a_quota_over_a_model_is_borrowed_from_but_not_held(cast: Cast, h100: Flavor) -> None:
    """It counts in sevenths of a device: all four are 28, of which 7 are its own."""
    whole = factories.flavor("h100.sevenths", FlavorKind.MODEL)
    for project, nominal in ((cast.detection, 7000), (Project.objects.get(name="Spare"), 21_000)):
        factories.quota(project, whole, nominal)
    Quota.objects.filter(flavor=whole).update(borrowing_limit_milli=None)
    mine = told(lends_to_detection(cast, h100), cast.detection)
    assert [each.flavor for each in mine.used] == [h100.name]
    assert mine.borrowed == (
        Borrowed(h100.name, FOUR_HOURS, FOUR_HOURS // 4),
        Borrowed("h100.sevenths", 21_000 * 3600, 21_000 * 3600),
    )


def test_of_others_it_is_told_what_they_borrow_together_and_nothing_that_they_spend(
    cast: Cast, h100: Flavor
) -> None:
    ran(cast.segmentation, cast.ben, h100, came=AT + 4 * HOUR)
    factories.quota(cast.segmentation, h100, 0)
    owner = factories.user("olive")
    factories.member(owner, Role.OWNER, at=cast.detection)
    found = replays.of_policy(
        actor=actor_for(user=owner), of=cast.detection, rules=Rules(max_pods=9), at=NOW
    )
    mine, others = found.projects
    assert (mine.project, len(mine.used)) == ("Detection", 1)
    assert (others.projects_count, others.used) == (2, ())
    assert others.borrowed == (Borrowed(h100.name, 2 * FOUR_HOURS, 2 * FOUR_HOURS),)


def test_who_may_not_see_what_is_spent_is_not_told_it_here(cast: Cast, h100: Flavor) -> None:
    """A token that operates does not read spend unless it has that scope, too."""
    for scopes, count in (([Scope.OPERATE], 0), ([Scope.OPERATE, Scope.READ], 1)):
        actor = actor_for(user=cast.oz, token=Token(user=cast.oz, scopes=scopes))
        found = replays.of_weight(actor=actor, of=cast.vision, weight=2, at=NOW)
        mine = told(found, cast.detection)
        assert (len(mine.used), len(mine.borrowed)) == (count, 1)
