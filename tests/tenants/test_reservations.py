"""Reserving: who may, what can be kept, and that giving it up works once."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from scheduler.selectors import fleet
from tenants.access import actor_for
from tenants.models import NEVER, Reservation, Role, TenantQuota, User
from tenants.selectors import reservations as selectors
from tenants.services import reservations
from tenants.services.reservations import Weekly
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

HOUR = timedelta(hours=1)
LATE = AT.date() + timedelta(weeks=10)


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    flavor = factories.flavor()
    factories.quota(cast.detection, flavor, 4000, borrowing_limit_milli=2000)
    return flavor


def make(cast: Cast, flavor: Flavor, *, by: User | None = None, **changes: Any) -> Reservation:
    """By oz, but for the changes; Any: arguments of the service."""
    asked: dict[str, Any] = {
        "amount_milli": 6000, "starts_at": AT + HOUR, "ends_at": AT + 2 * HOUR, "note": " Demo. ",
        "there_milli": 1_000_000, "of": cast.detection,
    }  # fmt: skip
    return reservations.make(
        actor=actor_for(user=by or cast.oz),
        flavor=flavor,
        at=AT,
        **asked | changes,
    )


def test_it_is_kept_with_who_made_it_and_audited(cast: Cast, h100: Flavor) -> None:
    made = make(cast, h100)
    assert (made.amount_milli, made.note, made.made_by) == (6000, "Demo.", cast.oz)
    event = AuditEvent.objects.get()
    assert (event.action, event.target_id) == ("reservation.make", made.id)
    assert event.after["starts_at"] == (AT + HOUR).isoformat()


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"amount_milli": 0}, "/amount_milli"),
        ({"amount_milli": 6001}, "/amount_milli"),
        ({"ends_at": AT + HOUR}, "/ends_at"),
        ({"starts_at": AT - HOUR, "ends_at": AT}, "/ends_at"),
        ({"note": "x" * 501}, "/note"),
        ({"there_milli": 5999}, "/amount_milli"),
        ({"weekly": Weekly(zone="Mars/Base", until=AT.date())}, "/zone"),
        ({"weekly": Weekly(zone="UTC", until=AT.date() - timedelta(days=1))}, "/weekly_until"),
        ({"weekly": Weekly(zone="UTC", until=AT.date() + timedelta(weeks=106))}, "/weekly_until"),
        (
            {"ends_at": AT + timedelta(days=6, hours=2), "weekly": Weekly(zone="UTC", until=LATE)},
            "/ends_at",
        ),
        ({"note": "a\u202eb"}, "/note"),
    ],
)
def test_what_can_t_be_kept_is_refused(
    cast: Cast, h100: Flavor, changes: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        make(cast, h100, **changes)
    assert refused.value.pointer == pointer
    assert not Reservation.objects.exists()


def test_what_is_reserved_at_one_time_is_counted_together(cast: Cast, h100: Flavor) -> None:
    make(cast, h100, amount_milli=4000)
    with pytest.raises(Invalid, match="at most, and 4 are reserved for it in that time already"):
        make(cast, h100, amount_milli=2001, starts_at=AT + 1.5 * HOUR, ends_at=AT + 3 * HOUR)
    make(cast, h100, amount_milli=2000)
    make(cast, h100, amount_milli=6000, starts_at=AT + 2 * HOUR, ends_at=AT + 3 * HOUR)


def test_what_is_reserved_at_different_times_is_not_added_up(cast: Cast, h100: Flavor) -> None:
    """At no moment are six that may be held passed by what is there at another."""
    for hours in (1, 2):
        starts_at = AT + hours * HOUR
        make(cast, h100, amount_milli=4000, starts_at=starts_at, ends_at=starts_at + HOUR)
    end = AT + 4 * HOUR
    with pytest.raises(Invalid, match="and 4 are reserved for it in that time already"):
        make(cast, h100, amount_milli=2001, starts_at=AT, ends_at=end)
    make(cast, h100, amount_milli=2000, starts_at=AT, ends_at=end)


def test_who_sees_the_project_alone_is_not_told_what_its_neighbours_reserve(
    cast: Cast, h100: Flavor
) -> None:
    limited(cast, h100, nominal=0, borrows=0)
    factories.quota(cast.segmentation, h100, 1000)
    factories.member(cast.ben, Role.OPERATOR, at=cast.detection)
    make(cast, h100, of=cast.segmentation, amount_milli=1000)
    with pytest.raises(Invalid, match=r"Vision Lab may hold 5 .* not as much of that is left"):
        make(cast, h100, by=cast.ben, amount_milli=4001)


def test_a_project_that_may_borrow_all_may_reserve_beyond_its_own(
    cast: Cast, h100: Flavor
) -> None:
    cast.detection.quotas.update(borrowing_limit_milli=None)
    assert make(cast, h100, amount_milli=100_000).amount_milli == 100_000


def test_one_of_a_tenant_is_kept_and_audited_there(cast: Cast, h100: Flavor) -> None:
    made = make(cast, h100, of=cast.vision)
    made.refresh_from_db()
    assert (made.project, made.tenant, made.owner) == (None, cast.vision, cast.vision)
    [event] = AuditEvent.objects.all()
    assert (event.tenant_id, event.project_id) == (cast.vision.id, None)
    reservations.cancel(actor=actor_for(user=cast.oz), reservation=made, at=AT)
    assert AuditEvent.objects.filter(tenant_id=cast.vision.id).count() == 2


def limited(cast: Cast, flavor: Flavor, *, nominal: int, borrows: int | None) -> None:
    TenantQuota.objects.create(
        tenant=cast.vision, flavor=flavor, nominal_milli=nominal, borrowing_limit_milli=borrows
    )


def test_a_tenant_keeps_what_is_nominal_in_it_and_below_and_what_it_may_borrow(
    cast: Cast, h100: Flavor
) -> None:
    limited(cast, h100, nominal=3000, borrows=500)
    arms = factories.project(factories.tenant("Robots", parent=cast.vision), "Arms")
    factories.quota(arms, h100, 1000)
    factories.quota(cast.dialogue, h100, 9000)
    with pytest.raises(Invalid, match=r"Vision Lab may hold 8\.5 of h100-80gb at most, and 8\.5"):
        make(cast, h100, of=cast.vision, amount_milli=8501)
    assert make(cast, h100, of=cast.vision, amount_milli=8500).amount_milli == 8500


def test_a_tenant_that_may_borrow_all_may_reserve_all(cast: Cast, h100: Flavor) -> None:
    assert make(cast, h100, of=cast.vision, amount_milli=100_000)
    limited(cast, h100, nominal=3000, borrows=None)
    assert make(cast, h100, of=cast.vision, amount_milli=100_000)


@pytest.mark.parametrize("first_above", [True, False])
def test_what_is_reserved_below_a_tenant_counts_for_it_in_any_order(
    cast: Cast, h100: Flavor, first_above: bool
) -> None:
    """Seven may be held in it: four are nominal, and it borrows three."""
    limited(cast, h100, nominal=0, borrows=3000)
    of = [cast.vision, cast.detection] if first_above else [cast.detection, cast.vision]
    make(cast, h100, of=of[0], amount_milli=4000)
    with pytest.raises(Invalid, match=r"Vision Lab may hold 7 .* and 4 are reserved for it in"):
        make(cast, h100, of=of[1], amount_milli=3001)
    make(cast, h100, of=of[1], amount_milli=3000)
    make(cast, h100, of=of[1], starts_at=AT + 2 * HOUR, ends_at=AT + 3 * HOUR)


def test_what_is_reserved_elsewhere_counts_for_no_tenant(cast: Cast, h100: Flavor) -> None:
    limited(cast, h100, nominal=0, borrows=0)
    factories.quota(cast.dialogue, h100, 4000)
    make(cast, h100, of=cast.dialogue, amount_milli=4000)
    make(cast, h100, of=cast.speech, amount_milli=4000)
    make(cast, h100, of=cast.vision, amount_milli=4000)


def test_a_tenant_without_quota_below_it_has_nothing_to_reserve(cast: Cast, h100: Flavor) -> None:
    with pytest.raises(Invalid, match="No project of Speech Lab has quota of h100-80gb") as told:
        make(cast, h100, of=cast.speech)
    assert told.value.pointer == "/flavor"
    assert not Reservation.objects.exists()


def test_those_who_set_a_tenants_quotas_reserve_for_it_and_its_people_see_it(
    cast: Cast, h100: Flavor
) -> None:
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    made = make(cast, h100, of=cast.vision)
    for user in (cast.ada, cast.ben, cast.cleo, otto):
        with pytest.raises(NotAllowed):
            make(cast, h100, by=user, of=cast.vision)
        with pytest.raises(NotAllowed):
            reservations.cancel(actor=actor_for(user=user), reservation=made, at=AT)
    own = make(cast, h100, by=otto, of=cast.detection)
    for user, seen in ((cast.ben, [made, own]), (otto, [made, own]), (cast.cleo, [])):
        found = selectors.reservations(actor=actor_for(user=user), at=AT)
        assert sorted(found, key=lambda row: row.id) == seen
    of = selectors.reservations(actor=actor_for(user=cast.ben), at=AT, of=cast.vision)
    assert list(of) == [made]
    assert selectors.reservation(actor=actor_for(user=cast.ben), id=made.id) == made
    with pytest.raises(NotFound):
        selectors.reservation(actor=actor_for(user=cast.cleo), id=made.id)


def test_without_quota_there_is_nothing_to_reserve(cast: Cast, h100: Flavor) -> None:
    with pytest.raises(Invalid, match="has no quota of h100-1g") as refused:
        make(cast, factories.mig_flavor())
    assert refused.value.pointer == "/flavor"


def test_only_those_who_set_quotas_reserve_and_cancel(cast: Cast, h100: Flavor) -> None:
    made = make(cast, h100)
    for user in (cast.ada, cast.ben, cast.pia):
        with pytest.raises(NotAllowed):
            make(cast, h100, by=user)
        with pytest.raises(NotAllowed):
            reservations.cancel(actor=actor_for(user=user), reservation=made, at=AT)
    with pytest.raises(NotFound):
        make(cast, h100, by=cast.cleo)


def test_it_is_cancelled_once_and_not_when_it_is_over(cast: Cast, h100: Flavor) -> None:
    oz = actor_for(user=cast.oz)
    first, second = (make(cast, h100, amount_milli=3000) for _ in range(2))
    reservations.cancel(actor=oz, reservation=first, at=AT)
    with pytest.raises(Conflict):
        reservations.cancel(actor=oz, reservation=first, at=AT)
    with pytest.raises(Conflict):
        reservations.cancel(actor=oz, reservation=second, at=AT + 2 * HOUR)
    assert list(selectors.reservations(actor=oz, at=AT)) == [second]
    assert not selectors.reservations(actor=oz, at=AT + 2 * HOUR)
    assert not selectors.reservations(actor=actor_for(user=cast.cleo), at=AT)


def test_more_than_there_is_is_refused_with_both_numbers(cast: Cast, h100: Flavor) -> None:
    told = (
        "The clusters have 5.999 h100-80gb, and 6 is asked for: what is not there can't be kept."
    )
    with pytest.raises(Invalid, match=re.escape(told)):
        make(cast, h100, there_milli=5999)
    make(cast, h100, there_milli=6000)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def weekly(cast: Cast, h100: Flavor, start: str, end: str, until: str, **more: Any) -> Reservation:
    return make(
        cast,
        h100,
        starts_at=at(start),
        ends_at=at(end),
        weekly=Weekly(zone="Europe/Berlin", until=date.fromisoformat(until)),
        **more,
    )


def test_a_weekly_one_begins_at_the_same_hour_though_clocks_change(
    cast: Cast, h100: Flavor
) -> None:
    """Clocks in Berlin are put forward on 31 March 2030."""
    made = weekly(cast, h100, "2030-03-22T22:00+01:00", "2030-03-23T04:00+01:00", "2030-04-11")
    found = list(made.windows(after=AT, before=NEVER))
    assert found == [
        (at("2030-03-22T22:00+01:00"), at("2030-03-23T04:00+01:00")),
        (at("2030-03-29T22:00+01:00"), at("2030-03-30T04:00+01:00")),
        (at("2030-04-05T22:00+02:00"), at("2030-04-06T04:00+02:00")),
    ]
    assert made.last_ends_at == at("2030-04-06T04:00+02:00")
    for nth, (start, end) in enumerate(found):
        assert list(made.windows(after=start, before=start + HOUR)) == [found[nth]]
        assert list(made.windows(after=end, before=NEVER)) == found[nth + 1 :]
        assert list(made.windows(after=AT, before=start)) == found[:nth]


@pytest.mark.parametrize(("until", "last"), [("2030-10-27", 0), ("2030-11-03", 7)])
def test_the_first_window_stands_in_the_hour_that_comes_twice(
    cast: Cast, h100: Flavor, until: str, last: int
) -> None:
    """Clocks in Berlin are put back at three on 27 October 2030: this is the second half past
    two."""
    start, end = "2030-10-27T02:30+01:00", "2030-10-27T03:30+01:00"
    made = weekly(cast, h100, start, end, until)
    found = list(made.windows(after=AT, before=NEVER))
    assert found[0] == (at(start), at(end))
    assert made.last_ends_at == found[-1][1] == at(end) + timedelta(days=last)


def test_weekly_ones_that_meet_add_up_and_others_do_not(cast: Cast, h100: Flavor) -> None:
    weekly(cast, h100, "2030-03-01T10:00Z", "2030-03-01T12:00Z", "2030-03-29", amount_milli=4000)
    with pytest.raises(Invalid, match="4 are reserved for it in that time already"):
        make(cast, h100, starts_at=at("2030-03-15T11:00Z"), ends_at=at("2030-03-15T13:00Z"))
    with pytest.raises(Invalid, match="4 are reserved for it in that time already"):
        weekly(cast, h100, "2030-02-22T11:00Z", "2030-02-22T13:00Z", "2030-03-01")
    make(cast, h100, starts_at=at("2030-03-15T12:00Z"), ends_at=at("2030-03-15T13:00Z"))
    make(cast, h100, starts_at=at("2030-04-05T10:00Z"), ends_at=at("2030-04-05T12:00Z"))
    weekly(cast, h100, "2030-03-02T10:00Z", "2030-03-02T12:00Z", "2030-03-30")


def test_a_weekly_one_is_listed_and_can_be_cancelled_until_its_last_window_ends(
    cast: Cast, h100: Flavor
) -> None:
    made = weekly(cast, h100, "2030-03-01T10:00Z", "2030-03-01T12:00Z", "2030-03-08")
    actor = actor_for(user=cast.oz)
    late = at("2030-03-08T11:59Z")
    assert list(selectors.reservations(actor=actor, at=late)) == [made]
    assert list(selectors.reservations(actor=actor, at=late + HOUR)) == []
    with pytest.raises(Conflict):
        reservations.cancel(actor=actor, reservation=made, at=late + HOUR)
    assert reservations.cancel(actor=actor, reservation=made, at=late).cancelled_at == late


def test_the_planner_sees_the_windows_of_the_next_weeks(cast: Cast, h100: Flavor) -> None:
    weekly(cast, h100, "2030-03-01T10:00Z", "2030-03-01T12:00Z", "2030-12-31")
    now = at("2030-03-08T11:00Z")
    seen = fleet.reservations(at=now)
    first = int(at("2030-03-08T10:00Z").timestamp())
    week = 7 * 24 * 3600
    assert [window.starts_at for window in seen[:3]] == [first, first + week, first + 2 * week]
    assert {window.ends_at - window.starts_at for window in seen} == {7200}
    assert [window.starts_at for window in seen[3:]] == [
        first + 3 * week,
        first + 4 * week - 3600,  # clocks were put forward
    ]
    assert seen[0].binds_at == first - settings.BERTH_RESERVATION_HORIZON_S


def test_one_that_is_kept_once_counts_however_far_ahead(cast: Cast, h100: Flavor) -> None:
    make(cast, h100, starts_at=AT + 9000 * HOUR, ends_at=AT + 9001 * HOUR)
    [seen] = fleet.reservations(at=AT)
    assert seen.starts_at == (AT + 9000 * HOUR).timestamp()
