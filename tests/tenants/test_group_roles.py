"""Who says which groups have which roles: whoever gives those roles to people, and no other."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed, NotFound
from controlplane.settings.oidc import OpenIDConnect
from tenants.access import Actor, Place, actor_for
from tenants.models import GroupRole, Member, Role, User
from tenants.services import group_roles, members
from tests import factories
from tests.conftest import Cast, Unchanged

URL = reverse("group-role-list")


@pytest.fixture(autouse=True)
def _providers(settings: Settings) -> None:
    usual = {"issuer": "https://id.example", "client_id": "b", "client_secret": "s"}
    settings.BERTH_PROVIDERS = {
        "acme": OpenIDConnect(name="acme", label="Acme", groups_claim="groups", **usual),
        "zen": OpenIDConnect(name="zen", label="Zen", **usual),
    }


def add(
    by: User | Actor,
    place: Place,
    role: Role = Role.VIEWER,
    *,
    provider: str = "acme",
    group: str = "vision",
) -> GroupRole:
    actor = by if isinstance(by, Actor) else actor_for(user=by)
    return group_roles.add(
        actor=actor, provider=provider, group=group, role=role, place=place, at=factories.AT
    )


@pytest.mark.parametrize("role", Role)
def test_an_owner_says_it_of_every_role_in_their_tenant_and_below(cast: Cast, role: Role) -> None:
    for place in (cast.vision, cast.detection):
        add(cast.ada, place, role)
        add(cast.ada, place, role)
    rows = AuditEvent.objects.filter(action="group-role.add").order_by("id")
    told = {"provider": "acme", "group": "vision", "role": role}
    assert [(row.tenant_id, row.project_id, row.after) for row in rows] == [
        (cast.vision.id, None, told),
        (cast.vision.id, cast.detection.id, told),
    ]


def test_nobody_else_does(cast: Cast, nothing_stored: Unchanged) -> None:
    by_token = actor_for(user=cast.ada, token=factories.token(cast.ada, "operate"))
    tries: list[tuple[User | Actor, Place, type[Exception]]] = [
        (cast.ben, cast.detection, NotAllowed),
        (cast.oz, cast.detection, NotAllowed),
        (cast.pia, None, NotAllowed),
        (cast.ada, None, NotAllowed),
        (cast.ada, cast.dialogue, NotFound),
        (by_token, cast.vision, NotAllowed),
    ]
    with nothing_stored():
        for by, place, refused in tries:
            with pytest.raises(refused):
                add(by, place)


@pytest.mark.parametrize(
    ("changes", "pointer", "code"),
    [
        ({"provider": "nobody"}, "/provider", "unknown"),
        ({"provider": "zen"}, "/provider", "unknown"),  # it tells no groups
        ({"group": ""}, "/group", "invalid"),
        ({"group": "g" * 256}, "/group", "invalid"),
        ({"group": "vision\u200b"}, "/group", "bad-character"),
    ],
)
def test_what_can_be_no_group_is_refused(
    cast: Cast, changes: dict[str, str], pointer: str, code: str, nothing_stored: Unchanged
) -> None:
    with nothing_stored(), pytest.raises(Invalid) as refused:
        add(
            cast.ada,
            cast.vision,
            provider=changes.get("provider", "acme"),
            group=changes.get("group", "vision"),
        )
    assert (refused.value.pointer, refused.value.code) == (pointer, code)


def test_only_who_gives_the_role_takes_it_from_the_group(cast: Cast) -> None:
    made = add(cast.ada, cast.detection)
    for by, refused in ((cast.ben, NotAllowed), (cast.oz, NotAllowed), (cast.cleo, NotFound)):
        with pytest.raises(refused):
            group_roles.remove(actor=actor_for(user=by), group_role=made, at=factories.AT)
    ada = actor_for(user=cast.ada)
    assert group_roles.remove(actor=ada, group_role=made, at=factories.AT) == 0
    with pytest.raises(NotFound):
        group_roles.remove(actor=ada, group_role=made, at=factories.AT)


def test_a_role_that_came_by_a_group_is_taken_from_the_group_alone(cast: Cast) -> None:
    rule = add(cast.ada, cast.detection)
    came = Member.objects.create(
        user=cast.cleo, role=rule.role, project=cast.detection, group_role=rule
    )
    ada = actor_for(user=cast.ada)
    with pytest.raises(Conflict, match="the group 'vision' of acme"):
        members.revoke(actor=ada, member=came, at=factories.AT)
    given = members.grant(
        actor=ada, user=cast.cleo, role=Role.VIEWER, place=cast.detection, at=factories.AT
    )
    assert given.id != came.id
    members.revoke(actor=ada, member=given, at=factories.AT)
    assert Member.objects.filter(id=came.id).exists()


def test_an_owner_by_a_group_is_no_reason_for_the_last_one_to_go(cast: Cast) -> None:
    rule = add(cast.ada, cast.vision, Role.OWNER)
    Member.objects.create(user=cast.cleo, role=rule.role, tenant=cast.vision, group_role=rule)
    own = Member.objects.get(user=cast.ada)
    with pytest.raises(Conflict, match="The last owner"):
        members.revoke(actor=actor_for(user=cast.ada), member=own, at=factories.AT)


def test_the_page_adds_and_takes_back(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.ada)
    place = f"tenant {cast.vision.id}"
    sent = {"provider": "acme", "group": "vision", "role": "viewer", "place": place}
    answer = client.post(URL, sent, follow=True)
    assert "vision of acme is viewer from their next sign-in on." in answer.content.decode()
    rule = GroupRole.objects.get()
    assert (rule.tenant, rule.made_by) == (cast.vision, cast.ada)
    for change in ({"place": "fleet"}, {"provider": "zen"}, {"group": ""}, {"x": "y"}):
        assert client.post(URL, sent | change).status_code == 422
    answer = client.post(reverse("group-role-remove", args=[rule.id]), follow=True)
    assert "it was of 0 people" in answer.content.decode()
    assert not GroupRole.objects.exists()


def test_who_owns_nothing_sees_none_and_is_offered_none(cast: Cast) -> None:
    add(cast.ada, cast.detection, group="secret-name")
    client = Client()
    client.force_login(cast.ben)
    page = client.get(URL).content.decode()
    assert "secret-name" not in page
    assert 'name="group"' not in page


def test_the_page_of_a_place_says_by_which_group(cast: Cast) -> None:
    rule = add(cast.ada, cast.detection)
    Member.objects.create(user=cast.cleo, role=rule.role, project=cast.detection, group_role=rule)
    client = Client()
    client.force_login(cast.ada)
    page = client.get(reverse("project-people", args=[cast.detection.id])).content.decode()
    assert "by the group vision" in page
    assert 'Take back<span class="visually-hidden"> Viewer of cleo' not in page
    told = client.get(f"/api/v1/members?project={cast.detection.id}").json()
    assert [row["group"] for row in told["items"] if row["user"] == "cleo"] == ["vision"]
