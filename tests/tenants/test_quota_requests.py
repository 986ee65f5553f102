"""Asking for quota and deciding: once, by somebody else, with quota, audit and hint together."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction

from clusters.models import Flavor, FlavorKind
from controlplane.audit.models import AuditEvent
from controlplane.kernel import hints
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from controlplane.kernel.throttle import TooOften
from tenants.access import Actor, actor_for
from tenants.models import Decision, Grant, Notice, Quota, QuotaRequest, Role, Scope, User
from tenants.selectors import requests as selectors
from tenants.services import asking_bounds, quotas, requests, steps
from tenants.services.grants import Allotment
from tenants.services.requests import Given
from tests import factories
from tests.conftest import Cast
from tests.waiting import PATIENCE_S


@pytest.fixture
def h100(db: None) -> Flavor:
    return factories.flavor()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hints that would have been sent."""
    names: list[str] = []
    monkeypatch.setattr(hints, "send", names.append)
    return names


def actor(user: User, *scopes: str) -> Actor:
    return actor_for(user=user, token=factories.token(user, *scopes) if scopes else None)


def ask(
    cast: Cast,
    h100: Flavor,
    nominal_milli: int = 16_000,
    by: User | None = None,
    at: datetime = factories.AT,
    **when: datetime,
) -> QuotaRequest:
    return requests.open(
        actor=actor(by or cast.ben),
        project=cast.detection,
        flavor=h100,
        allotment=Allotment(nominal_milli=nominal_milli, **when),
        reason=" A larger model.\nSoon. ",
        at=at,
    )


def test_a_grant_moves_the_quota_and_writes_it_down(
    cast: Cast, h100: Flavor, sent: list[str],
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:  # fmt: skip
    quota = factories.quota(cast.detection, h100, 8000, lending_limit_milli=2000)
    asked = ask(cast, h100)
    with django_capture_on_commit_callbacks(execute=True):
        granted = requests.grant(
            actor=actor(cast.pia), request=asked, note="Fine.", at=factories.AT
        )
    quota.refresh_from_db()
    assert (quota.nominal_milli, quota.lending_limit_milli, quota.version) == (16_000, 2000, 2)
    assert (granted.decision, granted.decided_by, granted.granted_milli) == (
        Decision.GRANTED, cast.pia, 16_000,
    )  # fmt: skip
    actions = AuditEvent.objects.order_by("id").values_list("action", "actor_name")
    assert list(actions) == [
        ("request.open", "ben"), ("request.granted", "pia"), ("quota.grant", "pia"),
        ("grant.begin", "pia"),
    ]  # fmt: skip
    change = AuditEvent.objects.get(action="quota.grant")
    assert (change.before["nominal_milli"], change.after["nominal_milli"]) == (8000, 16_000)
    assert sent == [hints.CYCLE]


def test_a_grant_makes_a_quota_where_there_is_none(cast: Cast, h100: Flavor) -> None:
    requests.grant(
        actor=actor(cast.pia),
        request=ask(cast, h100),
        given=Given(nominal_milli=4000, until_at=None),
        note="For now.",
        at=factories.AT,
    )
    quota = Quota.objects.get()
    assert (quota.nominal_milli, quota.borrowing_limit_milli) == (4000, 0)


def test_a_denial_needs_a_note_and_changes_no_quota(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100)
    with pytest.raises(Invalid) as refused:
        requests.deny(actor=actor(cast.pia), request=asked, note="  ", at=factories.AT)
    assert refused.value.pointer == "/note"
    denied = requests.deny(actor=actor(cast.pia), request=asked, note="No room.", at=factories.AT)
    assert (denied.decision, denied.note) == (Decision.DENIED, "No room.")
    assert not Quota.objects.exists()


def test_it_is_decided_once(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100)
    stale = QuotaRequest.objects.select_related("project").get(id=asked.id)
    requests.grant(actor=actor(cast.pia), request=asked, at=factories.AT)
    with pytest.raises(Conflict):
        requests.grant(actor=actor(cast.pia), request=stale, at=factories.AT)
    with pytest.raises(Conflict):
        requests.deny(actor=actor(cast.pia), request=stale, note="No", at=factories.AT)
    assert Quota.objects.get().nominal_milli == 16_000
    assert AuditEvent.objects.filter(action="quota.grant").count() == 1


def test_nobody_decides_their_own(cast: Cast, h100: Flavor) -> None:
    factories.member(cast.ben, Role.APPROVER, at=cast.vision)
    asked = ask(cast, h100)
    with pytest.raises(steps.SelfApproval) as refused:
        requests.grant(actor=actor(cast.ben), request=asked, at=factories.AT)
    assert refused.value.code == "self-approval"
    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaRequest.objects.filter(id=asked.id).update(
            decision="granted", decided_by=cast.ben, decided_at=factories.AT, granted_milli=1
        )
    assert not Quota.objects.exists()


def test_only_approvers_decide_and_never_by_token(cast: Cast, h100: Flavor) -> None:
    asked = ask(cast, h100)
    everything = [scope.value for scope in Scope]
    for who in (cast.ada, cast.ben, cast.vik, cast.oz):
        with pytest.raises(NotAllowed):
            requests.grant(actor=actor(who), request=asked, at=factories.AT)
    with pytest.raises(NotAllowed):
        requests.grant(actor=actor(cast.pia, *everything), request=asked, at=factories.AT)
    with pytest.raises(NotFound):
        requests.grant(actor=actor(cast.cleo), request=asked, at=factories.AT)
    assert QuotaRequest.objects.get().decision == ""


def test_only_owners_and_members_ask(cast: Cast, h100: Flavor) -> None:
    for who in (cast.vik, cast.oz, cast.pia):
        with pytest.raises(NotAllowed):
            ask(cast, h100, by=who)
    with pytest.raises(NotFound):
        ask(cast, h100, by=cast.cleo)
    assert ask(cast, h100, by=cast.ada).reason == "A larger model.\nSoon."


@pytest.mark.parametrize("amount", [-1, 10**12 + 1])
def test_amounts_are_bounded(cast: Cast, h100: Flavor, amount: int) -> None:
    with pytest.raises(Invalid):
        ask(cast, h100, amount)
    asked = ask(cast, h100)
    given = Given(nominal_milli=amount, until_at=None)
    with pytest.raises(Invalid):
        requests.grant(
            actor=actor(cast.pia), request=asked, given=given, note="No.", at=factories.AT
        )
    asked.refresh_from_db()
    assert asked.decision == ""


def test_a_project_has_a_bounded_number_of_open_requests(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST_OPEN", 1)
    ask(cast, h100)
    with pytest.raises(Invalid, match="undecided"):
        ask(cast, h100)


def test_who_asks_and_withdraws_over_and_over_has_to_wait(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mails the approvers. What was asked for stays where they look."""
    monkeypatch.setattr(asking_bounds, "MOST", 2)
    minute, second = timedelta(minutes=1), timedelta(seconds=1)

    def asked(after: timedelta, by: User | None = None) -> QuotaRequest:
        return ask(cast, h100, by=by, at=factories.AT + after)

    first = asked(timedelta())
    requests.withdraw(actor=actor(cast.ben), request=first, at=factories.AT)
    kept = asked(minute)
    with pytest.raises(TooOften, match="At most 2 of these in 3600 s") as refused:
        asked(2 * minute)
    assert refused.value.wait == 58 * 60
    assert Notice.objects.count() == 2
    assert selectors.requests(actor=actor(cast.pia)).get(decision="") == kept
    asked(2 * minute, by=cast.ada)  # it is of each person
    with pytest.raises(TooOften):
        asked(60 * minute - second)
    asked(60 * minute)


@pytest.mark.django_db(transaction=True)
def test_asking_many_times_at_once_is_no_way_round(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_bounds, "MOST", 2)
    together, refused = threading.Barrier(6, timeout=PATIENCE_S), list[TooOften]()

    def open_one() -> None:
        together.wait()
        try:
            ask(cast, h100)
        except TooOften as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (QuotaRequest.objects.count(), len(refused)) == (2, 4)


def set_quota(cast: Cast, h100: Flavor, version: int | None, nominal_milli: int = 1000) -> Quota:
    return quotas.set_quota(
        actor=actor(cast.oz),
        project=cast.detection,
        flavor=h100,
        amounts=quotas.Amounts(nominal_milli=nominal_milli),
        version=version,
        at=factories.AT,
    )


def test_an_operator_sets_a_quota_at_the_version_they_saw(cast: Cast, h100: Flavor) -> None:
    assert set_quota(cast, h100, version=0).version == 1
    assert set_quota(cast, h100, version=1, nominal_milli=2000).version == 2
    with pytest.raises(quotas.VersionMismatch):
        set_quota(cast, h100, version=1)
    with pytest.raises(quotas.VersionMismatch):
        set_quota(cast, h100, version=0)
    assert set_quota(cast, h100, version=None).nominal_milli == 1000


def test_a_quota_may_be_cut_below_what_is_used(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 8000, used_milli=8000)
    assert set_quota(cast, h100, version=1).used_milli == 8000


def test_only_operators_set_quotas(cast: Cast, h100: Flavor) -> None:
    for who in (cast.ada, cast.ben, cast.vik, cast.pia):
        with pytest.raises(NotAllowed):
            quotas.set_quota(
                actor=actor(who), project=cast.detection, flavor=h100,
                amounts=quotas.Amounts(nominal_milli=1), at=factories.AT,
            )  # fmt: skip
    assert not Quota.objects.exists()


def test_who_operates_less_than_the_fleet_raises_no_guarantee(cast: Cast, h100: Flavor) -> None:
    """Else an owner would grant themselves what they like by a second account."""
    factories.quota(cast.detection, h100, 8000)
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)

    def set_to(milli: int, by: User) -> int:
        return quotas.set_quota(
            actor=actor_for(user=by), project=cast.detection, flavor=h100,
            amounts=quotas.Amounts(nominal_milli=milli), at=factories.AT,
        ).nominal_milli  # fmt: skip

    with pytest.raises(NotAllowed, match="Only who operates the whole fleet raises"):
        set_to(9000, otto)
    assert Quota.objects.get().nominal_milli == 8000
    assert set_to(6000, otto) == 6000
    assert set_to(9000, cast.oz) == 9000


def test_nor_do_they_make_last_what_was_granted_for_a_time(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 8000)
    otto = factories.user("otto")
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    asked = factories.quota_request(
        cast.detection, h100, cast.ben, until_at=factories.AT + timedelta(days=7)
    )
    requests.grant(actor=actor_for(user=cast.pia), request=asked, at=factories.AT)
    assert Quota.objects.get().nominal_milli == 16_000

    def set_to(milli: int, limit_milli: int | None = None) -> int:
        return quotas.set_quota(
            actor=actor_for(user=otto), project=cast.detection, flavor=h100,
            amounts=quotas.Amounts(nominal_milli=milli, borrowing_limit_milli=limit_milli),
            at=factories.AT,
        ).nominal_milli  # fmt: skip

    with pytest.raises(NotAllowed, match="beyond what is there for good"):
        set_to(15_000)
    assert set_to(16_000, 0) == 16_000
    assert Grant.objects.get().state == "in-force"
    assert set_to(8000) == 8000
    assert Grant.objects.get().state == "ended"


@pytest.mark.parametrize(
    ("kind", "profile", "fits"),
    [
        (FlavorKind.WHOLE, "", False),
        (FlavorKind.MIG, "1g.10gb", False),
        (FlavorKind.SHARE, "", True),
        (FlavorKind.CPU, "", True),
    ],
)
def test_part_of_what_is_handed_out_whole_is_refused(
    cast: Cast, kind: FlavorKind, profile: str, fits: bool
) -> None:
    flavor = factories.flavor("some", kind=kind, profile=profile)
    refused = nullcontext() if fits else pytest.raises(Invalid, match="right would be 1000 or 2")
    oz, ben = actor_for(user=cast.oz), actor_for(user=cast.ben)
    amounts = quotas.Amounts(nominal_milli=0, borrowing_limit_milli=1500)
    with refused:
        quotas.set_quota(
            actor=oz, project=cast.detection, flavor=flavor, amounts=amounts, at=factories.AT
        )
    with refused:
        quotas.set_tenant_quota(
            actor=oz, tenant=cast.vision, flavor=flavor, amounts=amounts, at=factories.AT
        )
    with refused:
        requests.open(
            actor=ben, project=cast.detection, flavor=flavor, reason="A half more.",
            allotment=Allotment(nominal_milli=1500), at=factories.AT,
        )  # fmt: skip
    assert Quota.objects.exists() == QuotaRequest.objects.exists() == fits


def test_part_of_a_whole_that_is_there_already_stays(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 1500, borrowing_limit_milli=500)

    def set_to(nominal_milli: int, limit_milli: int) -> None:
        quotas.set_quota(
            actor=actor_for(user=cast.oz), project=cast.detection, flavor=h100,
            amounts=quotas.Amounts(
                nominal_milli=nominal_milli, borrowing_limit_milli=limit_milli
            ),
            at=factories.AT,
        )  # fmt: skip

    set_to(1500, 1000)
    with pytest.raises(Invalid, match="right would be 0 or 1000"):
        set_to(1500, 500)
    set_to(2000, 1000)
    assert Quota.objects.get().version == 3


def test_a_trim_to_part_of_a_whole_is_refused(cast: Cast, h100: Flavor) -> None:
    asked = factories.quota_request(cast.detection, h100, cast.ben)
    with pytest.raises(Invalid, match="right would be 15000 or 16000") as refused:
        requests.grant(
            actor=actor_for(user=cast.pia), request=asked, note="Less.",
            given=Given(nominal_milli=15_999, until_at=None), at=factories.AT,
        )  # fmt: skip
    assert refused.value.pointer == "/granted_milli"


def test_of_many_that_wait_ones_own_and_those_to_decide_come_first(
    cast: Cast, h100: Flavor
) -> None:
    other = factories.project(cast.vision, "Other")
    old = [factories.quota_request(other, h100, cast.ada) for _ in range(3)]
    own = factories.quota_request(cast.detection, h100, cast.ben)
    lea = factories.user("lea")
    factories.member(lea, Role.APPROVER, at=cast.detection)
    factories.member(lea, Role.VIEWER, at=other)
    factories.member(cast.ben, Role.VIEWER, at=other)

    def first(of: User, count: int) -> list[UUID]:
        lines = selectors.open_lines(actor=actor_for(user=of), at=factories.AT, limit=count)
        return [line.id for line in lines]

    for of in (cast.ben, lea):
        assert first(of, 2) == [own.id, old[0].id]
    assert first(cast.pia, 2) == [old[0].id, old[1].id]
