"""Granting and taking roles: by owners only, never more for oneself, never the last owner's."""

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from tenants import access
from tenants.access import Action, Actor, actor_for
from tenants.models import Member, Role, User
from tenants.services import break_glass, members, requests, steps
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
def test_an_owner_makes_others_what_they_are_not_and_unmakes_them(cast: Cast, role: Role) -> None:
    for place in (cast.vision, cast.detection):
        made = members.grant(
            actor=actor(cast.ada), user=cast.ben, role=role, place=place, at=factories.AT
        )
        members.revoke(actor=actor(cast.ada), member=made, at=factories.AT)
    assert not Member.objects.filter(user=cast.ben, role=role).exists()


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR])
def test_an_owner_makes_not_themself_stronger(cast: Cast, role: Role) -> None:
    for place in (cast.vision, cast.detection):
        with pytest.raises(NotAllowed, match="Somebody else has to"):
            members.grant(
                actor=actor(cast.ada), user=cast.ada, role=role, place=place, at=factories.AT
            )
    assert not Member.objects.filter(user=cast.ada, role=role).exists()


def test_an_owner_may_give_themself_a_lesser_role(cast: Cast) -> None:
    members.grant(
        actor=actor(cast.ada), user=cast.ada, role=Role.VIEWER, place=cast.detection,
        at=factories.AT,
    )  # fmt: skip
    assert cast.detection.members.filter(user=cast.ada, role=Role.VIEWER).exists()


def test_an_approver_whom_an_owner_made_decides_no_request_of_their_own(cast: Cast) -> None:
    members.grant(
        actor=actor(cast.ada), user=cast.ben, role=Role.APPROVER, place=cast.vision,
        at=factories.AT,
    )  # fmt: skip
    flavor = factories.flavor()
    own = factories.quota_request(cast.detection, flavor, cast.ben)
    with pytest.raises(steps.SelfApproval):
        requests.grant(actor=actor(cast.ben), request=own, at=factories.AT)


def test_each_role_says_whom_it_makes(cast: Cast) -> None:
    assert access.ROLE_GRANTS.keys() == set(Role)
    for role, given in access.ROLE_GRANTS.items():
        assert not given or Action.MANAGE_MEMBERS in access.ROLE_ACTIONS[role]


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


def test_an_owner_takes_nothing_back_that_is_above_them(cast: Cast) -> None:
    for user, role in ((cast.oz, Role.OPERATOR), (cast.pia, Role.APPROVER)):
        row = Member.objects.get(user=user, role=role, tenant=None, project=None)
        with pytest.raises(NotAllowed):
            members.revoke(actor=actor(cast.ada), member=row, at=factories.AT)


def test_the_account_behind_glass_is_nothing_but_what_it_was_made(cast: Cast) -> None:
    """It shows no second factor, and approves nothing."""
    break_glass.make(username="glass", at=factories.AT)
    glass, opal = User.objects.get(username="glass"), factories.user("opal")
    factories.member(opal, Role.OWNER)
    with pytest.raises(Invalid, match="is nothing else"):
        members.grant(
            actor=actor(opal), user=glass, role=Role.APPROVER, place=None, at=factories.AT
        )
    assert {member.role for member in glass.memberships.all()} == {Role.OWNER, Role.OPERATOR}
    factories.member(glass, Role.APPROVER)  # as an older Berth may have let it be
    asked = factories.quota_request(cast.detection, factories.flavor(), cast.ben)
    with pytest.raises(NotAllowed, match="does not permit"):
        requests.grant(actor=actor(glass), request=asked, at=factories.AT)
