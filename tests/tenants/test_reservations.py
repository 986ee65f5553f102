"""Reserving: who may, what can be kept, and that giving it up works once."""

from datetime import timedelta
from typing import Any

import pytest

from clusters.models import Flavor
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants.access import actor_for
from tenants.models import Reservation, User
from tenants.selectors import reservations as selectors
from tenants.services import reservations
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

HOUR = timedelta(hours=1)


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    flavor = factories.flavor()
    factories.quota(cast.detection, flavor, 4000, borrowing_limit_milli=2000)
    return flavor


def make(cast: Cast, flavor: Flavor, *, by: User | None = None, **changes: Any) -> Reservation:
    """By oz, but for the changes; Any: arguments of the service."""
    asked: dict[str, Any] = {
        "amount_milli": 6000, "starts_at": AT + HOUR, "ends_at": AT + 2 * HOUR, "note": " Demo. ",
    }  # fmt: skip
    return reservations.make(
        actor=actor_for(user=by or cast.oz),
        project=cast.detection,
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


def test_a_project_that_may_borrow_all_may_reserve_beyond_its_own(
    cast: Cast, h100: Flavor
) -> None:
    cast.detection.quotas.update(borrowing_limit_milli=None)
    assert make(cast, h100, amount_milli=100_000).amount_milli == 100_000


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
