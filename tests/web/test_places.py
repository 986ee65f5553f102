"""/tenants, and the people, name and place of each tenant and project."""

import pytest
from django.urls import reverse

from scheduler.core.lifecycle import State
from tenants.models import Member, Project, Role, Tenant, User
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import Browse, Shop

LIST = reverse("tenant-list")


def of_tenant(name: str, tenant: Tenant) -> str:
    return reverse(name, args=[tenant.id])


def of_project(name: str, project: Project) -> str:
    return reverse(name, args=[project.id])


@pytest.fixture
def root(cast: Cast) -> User:
    """Owner of the whole fleet."""
    user = factories.user("root")
    factories.member(user, Role.OWNER)
    return user


def test_the_tree_shows_what_is_below_each_tenant(browse: Browse, cast: Cast, shop: Shop) -> None:
    robots = factories.tenant("Robots", parent=cast.vision)
    arms = factories.project(robots, "Arms")
    factories.quota(arms, shop.h100, 3000)
    factories.quota(cast.segmentation, shop.h100, 2000)
    answer = browse(cast.ada).get(LIST)
    lines = [line for line, _ in answer.context["lines"]]
    assert [(line.tenant.name, line.level) for line in lines] == [("Vision Lab", 1), ("Robots", 2)]
    totals = [
        [(t.flavor, t.used_milli, t.nominal_milli) for t in line.totals if t.flavor != "cpu"]
        for line in lines
    ]
    quota = cast.detection.quotas.get(flavor=shop.h100)
    everything = ("h100-80gb", quota.used_milli, quota.nominal_milli + 5000)
    assert totals == [[everything], [("h100-80gb", 0, 3000)]]
    assert [name for _, name in lines[0].projects] == ["Detection", "Segmentation"]
    assert "Speech Lab" not in answer.content.decode()


def test_what_a_tenant_has_itself_counts_there_and_above(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    robots = factories.tenant("Robots", parent=cast.vision)
    robots.quotas.create(flavor=shop.h100, nominal_milli=7000)
    lines = [line for line, _ in browse(cast.ada).get(LIST).context["lines"]]
    assert lines[1].totals[0].nominal_milli == 7000
    quota = cast.detection.quotas.get(flavor=shop.h100)
    nominal = {total.flavor: total.nominal_milli for total in lines[0].totals}
    assert nominal["h100-80gb"] == quota.nominal_milli + 7000


def test_an_owner_makes_a_department_and_a_project_in_it(browse: Browse, cast: Cast) -> None:
    ada = browse(cast.ada)
    form = {"parent": str(cast.vision.id), "name": "Robots", "slug": "robots"}
    assert ada.post(LIST, form)["Location"] == LIST
    robots = Tenant.objects.get(slug="robots")
    assert robots.parent == cast.vision
    page = of_tenant("tenant-detail", robots)
    answer = ada.post(of_tenant("project-new", robots), {"name": "Arms", "slug": "arms"})
    assert answer["Location"] == page
    assert Project.objects.get(slug="arms").tenant == robots
    html = ada.get(page).content.decode()
    assert "A department of" in html
    assert "Arms is made." in html


def test_only_who_owns_the_fleet_is_offered_the_top(
    browse: Browse, cast: Cast, root: User
) -> None:
    form = {"parent": "", "name": "Bank", "slug": "bank"}
    assert browse(cast.ada).post(LIST, form).status_code == 422
    assert browse(cast.ben).post(LIST, form).status_code == 403
    assert browse(cast.ben).get(LIST).context["form"] is None
    assert browse(root).post(LIST, form).status_code == 303
    assert Tenant.objects.get(slug="bank").parent is None


@pytest.mark.parametrize(
    ("name", "slug", "status", "field"),
    [
        ("Speech Lab", "robots", 303, ""),
        ("Vis\N{CYRILLIC SMALL LETTER IE}on", "robots", 422, "name"),
        ("Robots", "Robots", 422, "slug"),
        ("Robots", "speech-lab", 409, "slug"),
    ],
)
def test_what_is_wrong_is_told_beside_its_field(
    browse: Browse, cast: Cast, name: str, slug: str, status: int, field: str
) -> None:
    """A name like that of a tenant elsewhere is none of theirs."""
    form = {"parent": str(cast.vision.id), "name": name, "slug": slug}
    answer = browse(cast.ada).post(LIST, form)
    assert answer.status_code == status
    if field:
        assert list(answer.context["form"].errors) == [field]


def test_names_and_places_are_changed_by_owners(browse: Browse, cast: Cast, root: User) -> None:
    owner = browse(root)
    page = of_project("project-people", cast.detection)
    name = of_project("project-rename", cast.detection)
    assert owner.post(name, {"name": "Finding"})["Location"] == page
    place = of_project("project-move", cast.detection)
    assert owner.post(place, {"tenant": str(cast.speech.id)})["Location"] == page
    moved = Project.objects.get(id=cast.detection.id)
    assert (moved.name, moved.tenant) == ("Finding", cast.speech)
    tenant = of_tenant("tenant-detail", cast.vision)
    assert owner.post(of_tenant("tenant-rename", cast.vision), {"name": "Eyes"})["Location"] == (
        tenant
    )
    parent = of_tenant("tenant-move", cast.vision)
    assert owner.post(parent, {"parent": str(cast.speech.id)})["Location"] == tenant
    assert Tenant.objects.get(id=cast.vision.id).parent == cast.speech
    assert owner.post(parent, {"parent": ""}).status_code == 303
    assert Tenant.objects.get(id=cast.vision.id).parent is None


def test_what_keeps_it_where_it_is_is_told(
    browse: Browse, cast: Cast, shop: Shop, root: User
) -> None:
    factories.workload(cast.detection, cast.ben, [shop.h100], state=State.PENDING)
    place = of_project("project-move", cast.detection)
    answer = browse(root).post(place, {"tenant": str(cast.speech.id)})
    assert answer.status_code == 409
    assert "waits or runs" in answer.context["place_form"].errors["tenant"][0]
    own = of_tenant("tenant-move", cast.vision)
    answer = browse(root).post(own, {"parent": str(cast.vision.id)})
    assert answer.status_code == 422  # it is not offered: that would be a cycle


def test_a_role_is_given_and_taken_back(browse: Browse, cast: Cast) -> None:
    ada = browse(cast.ada)
    page = of_tenant("tenant-detail", cast.vision)
    give = of_tenant("tenant-member", cast.vision)
    assert ada.post(give, {"user": "cleo", "role": "viewer"})["Location"] == page
    member = Member.objects.get(user=cast.cleo, tenant=cast.vision)
    take = reverse("member-revoke", args=[member.id])
    assert take in ada.get(page).content.decode()
    below = ada.get(of_project("project-people", cast.detection)).content.decode()
    assert "a role at" in below
    assert take not in below
    assert ada.post(take)["Location"] == page
    assert not Member.objects.filter(id=member.id).exists()
    gave = ada.post(
        of_project("project-member", cast.detection), {"user": "cleo", "role": "member"}
    )
    assert gave["Location"] == of_project("project-people", cast.detection)


def test_the_last_owner_stays_and_nobody_else_gives_roles(browse: Browse, cast: Cast) -> None:
    last = Member.objects.get(user=cast.ada, tenant=cast.vision)
    answer = browse(cast.ada).post(reverse("member-revoke", args=[last.id]))
    assert answer.status_code == 409
    assert "The last owner can" in answer.content.decode()
    give = of_tenant("tenant-member", cast.vision)
    answer = browse(cast.ada).post(give, {"user": "nobody", "role": "viewer"})
    assert answer.context["member_form"].errors == {"user": ["There is no such user."]}
    assert browse(cast.vik).post(give, {"user": "cleo", "role": "viewer"}).status_code == 403
    assert browse(cast.vik).post(give, {"user": "nobody", "role": "viewer"}).status_code == 403
    assert browse(cast.cleo).post(give, {"user": "cleo", "role": "viewer"}).status_code == 404


def test_a_role_in_the_whole_fleet_is_taken_back_nowhere_here(
    browse: Browse, cast: Cast, root: User
) -> None:
    fleet = Member.objects.get(user=cast.oz)
    assert browse(root).post(reverse("member-revoke", args=[fleet.id])).status_code == 404
