"""Service accounts: their place's owners make and close them, and they decide nothing."""

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants import access
from tenants.access import SERVICE_ROLES, Action, actor_for
from tenants.models import Member, Project, Role, Scope, Tenant, Token, User
from tenants.selectors import gates
from tenants.selectors import service_accounts as selectors
from tenants.services import (
    delegations,
    members,
    projects,
    requests,
    service_accounts,
    tokens,
)
from tenants.services.grants import Allotment
from tests import factories
from tests.conftest import Cast

AT = factories.AT


def made(by: User, place: Project | Tenant, name: str = "ci", role: Role = Role.MEMBER) -> User:
    return service_accounts.make(
        actor=actor_for(user=by), place=place, name=name, role=role, at=AT
    )


def test_an_owner_makes_one_with_a_role_at_its_place_and_it_is_told(cast: Cast) -> None:
    account = made(cast.ada, cast.detection)
    assert account.username == "service:vision-lab.detection:ci"
    assert not account.has_usable_password()
    held = account.memberships.get()
    assert (held.role, held.project, held.granted_by) == ("member", cast.detection, cast.ada)
    rows = AuditEvent.objects.order_by("id")
    assert [(row.action, row.project_id, row.actor_name) for row in rows] == [
        ("service-account.make", cast.detection.id, "ada"),
        ("member.grant", cast.detection.id, "ada"),
    ]
    of_tenant = made(cast.ada, cast.vision, role=Role.VIEWER)
    assert of_tenant.username == "service:vision-lab:ci"


@pytest.mark.parametrize("who", ["ben", "vik", "pia", "oz"])
def test_who_does_not_own_the_place_makes_none(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        made(getattr(cast, who), cast.detection)
    assert not User.objects.filter(username__startswith="service:").exists()


def test_a_stranger_is_told_of_no_place(cast: Cast) -> None:
    account = made(cast.ada, cast.detection)
    for place in (cast.vision, cast.detection):
        with pytest.raises(NotFound):
            made(cast.cleo, place)
    with pytest.raises(NotFound, match="no such service account"):
        selectors.one(actor=actor_for(user=cast.cleo), id=account.id)


@pytest.mark.parametrize("name", ["", "A", "a b", "a:b", "-a", "a" * 41, "c\u0456", "a.b"])
def test_what_is_no_name_is_refused(cast: Cast, name: str) -> None:
    with pytest.raises(Invalid) as error:
        made(cast.ada, cast.detection, name)
    assert error.value.problems[0].pointer == "/name"


@pytest.mark.parametrize("name", ["ci-1", "c1-1", "ci-l", "c-i1"])
def test_names_that_read_alike_are_refused(cast: Cast, name: str) -> None:
    made(cast.ada, cast.detection, "ci-1")
    with pytest.raises(Conflict, match="reads like it"):
        made(cast.ada, cast.detection, name)
    assert AuditEvent.objects.filter(action="service-account.make").count() == 1
    made(cast.ada, cast.segmentation, name)  # elsewhere it is another


def test_a_place_has_only_so_many(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_accounts, "MAX_OPEN", 1)
    first = made(cast.ada, cast.detection, "one")
    with pytest.raises(Invalid, match="close one first"):
        made(cast.ada, cast.detection, "two")
    service_accounts.close(actor=actor_for(user=cast.ada), account=first, at=AT)
    made(cast.ada, cast.detection, "two")


@pytest.mark.parametrize("role", sorted(set(Role) - set(SERVICE_ROLES)))
def test_it_gets_no_role_that_approves_or_gives(cast: Cast, role: Role) -> None:
    with pytest.raises(Invalid, match="gives and decides nothing"):
        made(cast.ada, cast.detection, "other", role)
    assert not User.objects.filter(username__endswith=":other").exists()
    account = made(cast.ada, cast.detection)
    with pytest.raises(Invalid, match="gives and decides nothing"):
        members.grant(
            actor=actor_for(user=cast.ada), user=account, role=role, place=cast.detection, at=AT
        )


def test_its_role_is_taken_and_given_as_anybodys_but_at_its_place_alone(cast: Cast) -> None:
    ada, account = actor_for(user=cast.ada), made(cast.ada, cast.detection)
    members.revoke(actor=ada, member=account.memberships.get(), at=AT)
    name = account.username
    found = members.named(actor=ada, username=name, role=Role.VIEWER, place=cast.detection)
    members.grant(actor=ada, user=found, role=Role.VIEWER, place=cast.detection, at=AT)
    for place in (cast.segmentation, cast.vision):
        with pytest.raises(Invalid, match="There is no such user"):
            members.named(actor=ada, username=name, role=Role.VIEWER, place=place)
        with pytest.raises(Invalid, match="at its own place alone"):
            members.grant(actor=ada, user=account, role=Role.VIEWER, place=place, at=AT)


def test_nothing_that_it_may_do_is_more_than_its_managers_may() -> None:
    owner = access.ROLE_ACTIONS[Role.OWNER]
    for role in SERVICE_ROLES:
        assert access.ROLE_ACTIONS[role] <= owner
    for scope in tokens.SERVICE_SCOPES:
        assert not access.SCOPE_ACTIONS[scope] & access.SCOPE_ACTIONS[Scope.OPERATE]


def test_it_asks_for_nothing_and_is_nobodys_delegate_and_opens_no_gate(cast: Cast) -> None:
    account = made(cast.ada, cast.detection)
    flavor = factories.flavor()
    token = factories.token(account, *Scope.values)
    by_token = actor_for(user=account, token=token)
    never = {
        Action.REQUEST_QUOTA,
        Action.DECIDE_REQUEST,
        Action.DECIDE_GATE,
        Action.MANAGE_MEMBERS,
    }
    assert not by_token.ceiling & never
    with pytest.raises(NotAllowed):
        requests.open(
            actor=by_token, project=cast.detection, flavor=flavor,
            allotment=Allotment(nominal_milli=1000), reason="More.", at=AT,
        )  # fmt: skip
    with pytest.raises(Invalid, match="Name somebody else"):
        delegations.make(
            actor=actor_for(user=cast.pia), delegate=account.username, from_at=None,
            until_at=AT.replace(day=AT.day + 1), at=AT,
        )  # fmt: skip
    assert gates.owner(username=account.username, project=cast.detection) is None
    assert gates.owner(username="ben", project=cast.detection) == cast.ben


def test_closing_it_ends_its_tokens_and_it_stays_closed(cast: Cast) -> None:
    ada, account = actor_for(user=cast.ada), made(cast.ada, cast.detection)
    token, _ = tokens.issue(actor=ada, account=account, name="ci", scopes=[Scope.SUBMIT], at=AT)
    assert service_accounts.close(actor=ada, account=account, at=AT) == 1
    token.refresh_from_db()
    account.refresh_from_db()
    assert (token.revoked_at, account.is_active) == (AT, False)
    assert service_accounts.close(actor=ada, account=account, at=AT) == 0
    told = AuditEvent.objects.filter(action__in=["token.revoke", "service-account.close"])
    assert [row.project_id for row in told] == [cast.detection.id] * 2
    with pytest.raises(Invalid, match="closed"):
        tokens.issue(actor=ada, account=account, name="ci", scopes=[Scope.SUBMIT], at=AT)


def test_it_stays_when_who_made_it_goes(cast: Cast) -> None:
    eve = factories.user("eve")
    owner = factories.member(eve, Role.OWNER, at=cast.detection)
    account = made(eve, cast.detection)
    token, _ = tokens.issue(
        actor=actor_for(user=eve), account=account, name="ci", scopes=[Scope.SUBMIT], at=AT
    )
    tokens.revoke_of(user=eve, by="provider:acme", name="acme", at=AT)
    members.revoke(actor=actor_for(user=cast.ada), member=owner, at=AT)
    User.objects.filter(id=eve.id).update(is_active=False, left_at=AT)
    token.refresh_from_db()
    assert (token.made_by, token.revoked_at) == (eve, None)
    assert access.allowed(
        actor_for(user=account, token=token), Action.SUBMIT, project=cast.detection
    )
    with pytest.raises(NotFound):
        selectors.one(actor=actor_for(user=eve), id=account.id)
    tokens.revoke(actor=actor_for(user=cast.ada), token=token, at=AT)


def test_it_goes_with_its_project_and_has_nothing_where_that_was(cast: Cast) -> None:
    factories.member(cast.ada, Role.OWNER)
    account, of_tenant = made(cast.ada, cast.detection), made(cast.ada, cast.vision)
    projects.move(
        actor=actor_for(user=cast.ada), project=cast.detection, tenant=cast.speech, at=AT
    )
    here = Project.objects.get(id=cast.detection.id)
    assert access.allowed(actor_for(user=account), Action.SUBMIT, project=here)
    assert not access.allowed(actor_for(user=of_tenant), Action.SUBMIT, project=here)


@pytest.mark.parametrize("scope", ["gate", "quota", "operate"])
def test_its_tokens_read_and_submit_and_no_more(cast: Cast, scope: str) -> None:
    ada, account = actor_for(user=cast.ada), made(cast.ada, cast.detection)
    with pytest.raises(Invalid, match="reads and submits") as error:
        tokens.issue(
            actor=ada, account=account, name="ci", scopes=[Scope.SUBMIT, Scope(scope)], at=AT
        )
    assert error.value.problems[0].pointer == "/scopes"
    assert not Token.objects.exists()


def test_a_token_of_a_tenants_account_is_narrowed_to_a_project_of_its_own(cast: Cast) -> None:
    ada, account = actor_for(user=cast.ada), made(cast.ada, cast.vision)
    token, _ = tokens.issue(
        actor=ada, account=account, name="ci", scopes=[Scope.SUBMIT], project=cast.detection, at=AT
    )
    bound = actor_for(user=account, token=token)
    assert access.allowed(bound, Action.SUBMIT, project=cast.detection)
    assert not access.allowed(bound, Action.SUBMIT, project=cast.segmentation)
    of_project = made(cast.ada, cast.detection)
    with pytest.raises(NotFound):
        tokens.issue(
            actor=ada, account=of_project, name="ci", scopes=[Scope.SUBMIT],
            project=cast.segmentation, at=AT,
        )  # fmt: skip


def test_who_manages_it_no_more_makes_and_ends_none_of_its_tokens(cast: Cast) -> None:
    account = made(cast.ada, cast.detection)
    token = factories.token(account)
    for who, refused in ((cast.ben, NotAllowed), (cast.cleo, NotFound)):
        with pytest.raises(refused):
            tokens.issue(
                actor=actor_for(user=who), account=account, name="x", scopes=[Scope.READ], at=AT
            )
        with pytest.raises(NotFound):
            tokens.revoke(actor=actor_for(user=who), token=token, at=AT)
    by_token = actor_for(user=account, token=token)
    with pytest.raises(NotAllowed, match="can't issue tokens"):
        tokens.issue(actor=by_token, account=account, name="x", scopes=[Scope.READ], at=AT)
    with pytest.raises(NotAllowed):
        members.grant(
            actor=by_token, user=cast.cleo, role=Role.VIEWER, place=cast.detection, at=AT
        )
    assert Member.objects.filter(user=cast.cleo).count() == 1
