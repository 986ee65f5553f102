"""Granting and taking roles: never more than one holds, never the last owner's."""

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, NotAllowed, NotFound
from tenants.access import Actor, actor_for
from tenants.models import Member, Role, User
from tenants.services import members
from tests import factories
from tests.conftest import Cast


def actor(user: User) -> Actor:
    return actor_for(user=user)


def test_an_owner_gives_roles_in_their_tenant_and_below(cast: Cast) -> None:
    for place in (cast.vision, cast.detection):
        made = members.grant(
            actor=actor(cast.ada), user=cast.cleo, role=Role.VIEWER, place=place, at=factories.AT
        )
        assert made.user == cast.cleo
    rows = AuditEvent.objects.filter(action="member.grant").order_by("id")
    assert [(row.tenant_id, row.project_id) for row in rows] == [
        (cast.vision.id, None),
        (cast.vision.id, cast.detection.id),
    ]


def test_granting_twice_makes_one_row(cast: Cast) -> None:
    for _ in range(2):
        members.grant(
            actor=actor(cast.ada), user=cast.cleo, role=Role.MEMBER, place=cast.detection,
            at=factories.AT,
        )  # fmt: skip
    assert Member.objects.filter(user=cast.cleo, project=cast.detection).count() == 1
    assert AuditEvent.objects.filter(action="member.grant").count() == 1


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR])
def test_an_owner_gives_nothing_they_lack(cast: Cast, role: Role) -> None:
    with pytest.raises(NotAllowed, match="you don't hold"):
        members.grant(
            actor=actor(cast.ada), user=cast.ben, role=role, place=cast.vision, at=factories.AT
        )


@pytest.mark.parametrize("name", ["ben", "vik", "oz", "pia"])
def test_only_owners_grant(cast: Cast, name: str) -> None:
    with pytest.raises(NotAllowed):
        members.grant(
            actor=actor(getattr(cast, name)), user=cast.cleo, role=Role.VIEWER,
            place=cast.detection, at=factories.AT,
        )  # fmt: skip


def test_an_outsider_learns_nothing(cast: Cast) -> None:
    for place in (cast.vision, cast.detection):
        with pytest.raises(NotFound):
            members.grant(
                actor=actor(cast.cleo), user=cast.cleo, role=Role.OWNER, place=place,
                at=factories.AT,
            )  # fmt: skip


def test_an_owner_gives_nothing_fleet_wide(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        members.grant(
            actor=actor(cast.ada), user=cast.ada, role=Role.VIEWER, place=None, at=factories.AT
        )


def test_a_role_is_taken_back_and_written_down(cast: Cast) -> None:
    row = cast.detection.members.get()
    members.revoke(actor=actor(cast.ada), member=row, at=factories.AT)
    assert not cast.detection.members.exists()
    assert AuditEvent.objects.get().after == {"user": str(cast.ben.id), "role": "member"}
    with pytest.raises(NotFound):
        members.revoke(actor=actor(cast.ada), member=row, at=factories.AT)


def test_the_last_owner_stays(cast: Cast) -> None:
    own = cast.vision.members.get(role=Role.OWNER)
    with pytest.raises(Conflict, match="last owner"):
        members.revoke(actor=actor(cast.ada), member=own, at=factories.AT)
    factories.member(cast.vik, Role.OWNER, at=cast.vision)
    members.revoke(actor=actor(cast.vik), member=own, at=factories.AT)
    assert not cast.vision.members.filter(user=cast.ada).exists()


def test_an_owner_can_not_take_back_what_is_above_them(cast: Cast) -> None:
    row = factories.member(cast.ben, Role.APPROVER, at=cast.vision)
    with pytest.raises(NotAllowed):
        members.revoke(actor=actor(cast.ada), member=row, at=factories.AT)
