"""One of everything, of Vision Lab's Detection, and everybody who might ask for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import Flavor
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from tenants.access import actor_for
from tenants.models import (
    ApprovalRule,
    Channel,
    ChannelKind,
    Decision,
    Delegation,
    Grant,
    GroupRole,
    Project,
    QuotaRequest,
    Role,
    Scope,
    Tenant,
    User,
    UserSession,
)
from tenants.services import channels, service_accounts
from tests import factories
from tests.conftest import Cast
from tests.declared import declared_pool

COLUMNS = (
    "owner",
    "approver",
    "operator",
    "member",
    "viewer",
    "fleet owner",
    "fleet operator",
    "fleet approver",
    "outsider",
    "anonymous",
    "revoked",
    "narrow scope",
    "narrow project",
    "all scopes",
)
"""Roles are Vision Lab's own but for the fleet's. The last three are the owner's tokens: to read
only; to do everything, in another project of the tenant; to do everything anywhere."""


@dataclass(frozen=True)
class World:
    cast: Cast
    tenant: Tenant
    project: Project
    ids: Mapping[str, Any]  # Any: what stands for a route's arguments
    clients: Mapping[str, Client]


def build(cast: Cast) -> World:
    """Every object belongs to Detection; ben, its member, made what a member makes."""
    flavor = factories.flavor()
    cluster = factories.cluster()
    west = factories.cluster("west")
    node = factories.node(cluster, gpus=1)
    factories.quota(cast.detection, flavor)
    rate = factories.rate(flavor)
    lately = clock.now() - timedelta(hours=1)  # found by trials of the last days, any day
    running = factories.workload(
        cast.detection, cast.ben, [flavor], state=State.RUNNING, submitted_at=lately
    )
    waiting = factories.workload(cast.detection, cast.ben, [flavor])
    array = factories.array(cast.detection, cast.ben, [flavor])
    for work in (waiting, array):
        factories.gate(work, cast.ben)
    factories.standing_gate(cast.detection, cast.ben)
    placement = factories.place(running, node, flavor)
    factories.inspection(placement)
    factories.charge(factories.usage(placement), rate)
    factories.estimate(running)
    member = cast.detection.members.get()  # before there is a service account's
    asked = factories.quota_request(cast.detection, flavor, cast.ben)
    granted = _granted(cast, flavor)
    reservation = factories.reservation(cast.detection, flavor, cast.oz)
    budget = factories.budget(cast.detection)
    channel = _channel(cast)
    token = factories.token(cast.ada)
    factories.defragmentation(west)
    probe = factories.probe(cluster)
    pool = factories.node_pool(cluster)
    declared = declared_pool(cluster)
    later = datetime.now(UTC) + timedelta(days=1)
    delegation = Delegation.objects.create(
        approver=cast.pia, delegate=cast.oz, from_at=later, until_at=later + timedelta(days=1)
    )
    rule = ApprovalRule.objects.create(tenant=cast.vision, level="tenant", from_milli=10**12)
    recut = factories.recut(factories.node(west, "w1", gpus=1))
    return World(
        cast=cast,
        tenant=cast.vision,
        project=cast.detection,
        ids={
            "tenant": cast.vision.id,
            "department": factories.tenant("Robotics", parent=cast.vision).id,
            "project": cast.detection.id,
            "workload": running.id,
            "waiting workload": waiting.id,
            "array": array.id,
            "placement": placement.id,
            "request": asked.id,
            "granted request": granted.id,
            "reservation": reservation.id,
            "budget": budget.id,
            "channel": channel.id,
            "member": member.id,
            "delegation": delegation.id,
            "approval rule": rule.id,
            "fleet member": cast.oz.memberships.get().id,
            "token": token.id,
            "service account": _service_account(cast).id,
            "user": cast.ben.id,
            "group role": _group_role(cast).id,
            "session": _session(cast).id,
            "second factor": _second_factor(cast),
            "cluster": cluster.id,
            "flavor": flavor.id,
            "probe": probe.id,
            "other cluster": west.id,
            "cluster name": cluster.name,
            "other cluster name": west.name,
            "recut": recut.id,
            "node pool": pool.id,
            "declared pool": declared.id,
        },
        clients=_clients(cast),
    )


def _group_role(cast: Cast) -> GroupRole:
    return GroupRole.objects.create(
        provider="acme",
        group="vision",
        role=Role.VIEWER,
        project=cast.detection,
        made_by=cast.ada,
        made_at=datetime.now(UTC),
    )


def _service_account(cast: Cast) -> User:
    return service_accounts.make(
        actor=actor_for(user=cast.ada),
        place=cast.detection,
        name="ci",
        role=Role.MEMBER,
        at=datetime.now(UTC),
    )


def _session(cast: Cast) -> UserSession:
    """The owner's, on another device."""
    at = datetime.now(UTC)
    opened = Session.objects.create(session_key="elsewhere", expire_date=at + timedelta(hours=1))
    return UserSession.objects.create(user=cast.ada, session=opened, began_at=at, seen_at=at)


def _second_factor(cast: Cast) -> int:
    """The owner's app."""
    made = Authenticator.objects.create(user=cast.ada, type=Authenticator.Type.TOTP, data={})
    return int(made.pk)


def _channel(cast: Cast) -> Channel:
    made, _ = channels.make(
        actor=actor_for(user=cast.ada),
        of=cast.detection,
        name="Chat",
        kind=ChannelKind.JSON,
        url="https://hooks.example/x",
        events=["grant.ended"],
        at=datetime.now(UTC),
    )
    return made


def _granted(cast: Cast, flavor: Flavor) -> QuotaRequest:
    """For a time, which has begun."""
    at = datetime.now(UTC)
    request = factories.quota_request(
        cast.detection,
        flavor,
        cast.ben,
        decision=Decision.GRANTED,
        decided_by=cast.pia,
        decided_at=at,
        granted_milli=16_000,
    )
    until_at = at + timedelta(days=1)
    Grant.objects.create(
        request=request, from_at=at, until_at=until_at, begun_at=at, extra_milli=0
    )
    return request


def _clients(cast: Cast) -> dict[str, Client]:
    ann, otto, flo = (factories.user(name) for name in ("ann", "otto", "flo"))
    factories.member(flo, Role.OWNER)
    factories.member(ann, Role.APPROVER, at=cast.vision)
    factories.member(otto, Role.OPERATOR, at=cast.vision)
    every = [scope.value for scope in Scope]
    people = {
        "owner": cast.ada,
        "approver": ann,
        "operator": otto,
        "member": cast.ben,
        "viewer": cast.vik,
        "fleet owner": flo,
        "fleet operator": cast.oz,
        "fleet approver": cast.pia,
        "outsider": cast.cleo,
        "anonymous": None,
    }
    tokens = {
        "revoked": factories.token(cast.ada, *every, revoked_at=datetime.now(UTC)),
        "narrow scope": factories.token(cast.ada, Scope.READ),
        "narrow project": factories.token(cast.ada, *every, project=cast.segmentation),
        "all scopes": factories.token(cast.ada, *every),
    }
    clients: dict[str, Client] = {}
    for column, user in people.items():
        clients[column] = APIClient()
        if user is not None:
            clients[column].force_login(user)
    for column, token in tokens.items():
        clients[column] = APIClient(headers=factories.bearer(token))
    return clients
