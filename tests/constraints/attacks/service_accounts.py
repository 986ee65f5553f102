"""Attacks on what service accounts are not: they sign in nowhere, ask for and decide nothing."""

from functools import partial

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount

from tenants.models import (
    Delegation,
    GroupRole,
    Member,
    Project,
    QuotaRequest,
    RequestStep,
    Role,
    StandingGate,
    Tenant,
    User,
)
from tests.constraints.attack import Attack
from tests.constraints.moves import Statement, change, copy, insert_like, update
from tests.constraints.rows import NOON, make

_ACCOUNT = {
    "username": "service:vision:ci",
    "password": "!",
    "service_project": lambda: make(Project),
}


def _account() -> User:
    return make(User, **_ACCOUNT)


def _id() -> object:
    return _account().pk


def _becomes(column: str) -> Statement:
    place = make(Tenant).pk if column == "service_tenant_id" else make(Project).pk
    return update(make(User), username="service:a:b", password="!", email="", **{column: place})


def _moves() -> Statement:
    return update(_account(), service_project_id=make(Project).pk)


def _opens() -> Statement:
    return update(make(User, **_ACCOUNT, is_active=False), is_active=True)


def _has(**columns: object) -> Statement:
    """A viewer of its own project, with one thing wrong."""
    account = _account()
    held = make(Member, user=make(User), role=Role.VIEWER, project=account.service_project)
    named = {name: each() if callable(each) else each for name, each in columns.items()}
    return insert_like(held, user_id=account.pk, **named)


def _by_a_group() -> Statement:
    account = _account()
    rule = make(GroupRole, role=Role.VIEWER, project=account.service_project, made_by=make(User))
    held = make(Member, user=account, role=Role.VIEWER, project=account.service_project)
    return update(held, group_role_id=rule.pk)


def _step(column: str) -> Statement:
    step = make(
        RequestStep, request=make(QuotaRequest), decided_by=make(User), position=1,
        outcome="agreed", granted_milli=1000,
    )  # fmt: skip
    said = {"position": 2, "decided_by_id": make(User).pk, column: _id()}
    return insert_like(step, **said)


def _decides() -> Statement:
    return update(
        make(QuotaRequest), decision="denied", decided_by_id=_id(), decided_at=NOON, note="No."
    )


def _delegates(column: str) -> Statement:
    made = make(Delegation, approver=make(User), delegate=make(User))
    return insert_like(made, **{column: _id()})


ATTACKS = (
    Attack(
        "user_serves_one_place",
        "a service account is of a tenant and a project",
        change(User, _ACCOUNT, service_tenant_id=lambda: make(Tenant).pk),
        behind=("user_serves_for_good",),
    ),
    Attack(
        "user_called_what_it_is",
        "a service account is called like a person",
        change(User, _ACCOUNT, username="ben"),
        behind=("user_serves_for_good",),
    ),
    Attack(
        "user_called_what_it_is",
        "a person is called like a service account",
        change(User, username="service:vision:ci"),
    ),
    *(
        Attack("user_who_serves_never_signs_in", sentence, change(User, _ACCOUNT, **columns))
        for sentence, columns in (
            ("a service account has a password", {"password": "pbkdf2_sha256$1"}),
            ("one gets mail", {"email": "ci@example.org"}),
            ("one reads the back office", {"is_staff": True}),
            ("one does anything there", {"is_superuser": True}),
            ("one is for when nobody else gets in", {"is_break_glass": True}),
        )
    ),
    *(
        Attack(
            "user_serves_for_good",
            f"a person becomes one by {column}",
            partial(_becomes, column),
        )
        for column in ("service_tenant_id", "service_project_id")
    ),
    Attack("user_serves_for_good", "one is another project's", _moves),
    Attack(
        "user_serves_for_good",
        "one is called otherwise",
        change(User, _ACCOUNT, username="service:vision:other"),
    ),
    Attack("user_serves_for_good", "a closed one is open again", _opens),
    *(
        Attack("member_serves_its_place", f"a service account is {role}", partial(_has, role=role))
        for role in ("owner", "approver", "operator")
    ),
    Attack(
        "member_serves_its_place",
        "a service account has a role in another project",
        partial(_has, project_id=lambda: make(Project).pk),
    ),
    Attack(
        "member_serves_its_place",
        "a project's account has a role in a tenant",
        partial(_has, project_id=None, tenant_id=lambda: make(Tenant).pk),
    ),
    Attack(
        "member_serves_its_place",
        "a project's account has a role in the fleet",
        partial(_has, project_id=None),
    ),
    Attack("member_serves_its_place", "a service account is in a group", _by_a_group),
    Attack(
        "quota_request_by_a_person",
        "a service account asks for quota",
        copy(QuotaRequest, requested_by_id=_id),
    ),
    Attack("quota_request_by_a_person", "a service account denies a request", _decides),
    Attack("step_by_a_person", "a service account takes a step", partial(_step, "decided_by_id")),
    Attack(
        "step_by_a_person",
        "a step is taken for a service account",
        partial(_step, "on_behalf_of_id"),
        behind=("step_of_its_request",),
    ),
    *(
        Attack(
            "delegation_by_a_person",
            f"a service account is {column} of a delegation",
            partial(_delegates, column),
        )
        for column in ("approver_id", "delegate_id")
    ),
    Attack(
        "standing_gate_of_a_person",
        "a service account opens a gate",
        change(StandingGate, {"name": "a"}, owner_id=_id),
    ),
    *(
        Attack(f"{table}_of_a_person", f"a service account {how} {what}", move)
        for model, what, columns in (
            (SocialAccount, "an account at a provider", {"uid": "other"}),
            (EmailAddress, "an address", {"email": "other@example.org"}),
            (Authenticator, "a second factor", {}),
        )
        for table in (model._meta.db_table,)
        for how, move in (
            ("gets", copy(model, user_id=_id, **columns)),
            ("is given a person's", change(model, user_id=_id)),
        )
    ),
)
