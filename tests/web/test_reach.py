"""Tokens of others, as owners of the place that they reach into see and end them."""

from datetime import timedelta

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from tenants.access import actor_for
from tenants.models import Role, Token, User
from tenants.selectors import reach
from tests import factories
from tests.conftest import Cast
from tests.service_accounts import service_account
from tests.web.conftest import Browse


def url(cast: Cast) -> str:
    return reverse("project-tokens", args=[cast.detection.id])


def seen(by: User, place: object) -> set[Token]:
    return set(reach.tokens(actor=actor_for(user=by), place=place, at=clock.now()))  # type: ignore[arg-type]  # a place


def test_what_reaches_in_is_seen_and_nothing_else(cast: Cast) -> None:
    account = service_account(cast.detection)
    ben, vik, ci = (factories.token(each) for each in (cast.ben, cast.vik, account))
    here = factories.token(cast.vik, project=cast.detection)
    there = factories.token(cast.vik, project=cast.segmentation)
    fleet, foreign = factories.token(cast.oz), factories.token(cast.cleo)
    factories.token(cast.ben, revoked_at=clock.now())
    long_ago = clock.now() - timedelta(days=2)
    factories.token(cast.ben, created_at=long_ago, expires_at=long_ago + timedelta(days=1))
    assert seen(cast.ada, cast.detection) == {ben, vik, ci, here}
    assert seen(cast.ada, cast.segmentation) == {vik, there}
    assert seen(cast.ada, cast.vision) == {ben, vik, ci, here, there}
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    assert seen(fay, None) == {ben, vik, ci, here, there, fleet, foreign}


def test_one_is_revoked_at_once_and_whose_it_is_sees_by_whom(browse: Browse, cast: Cast) -> None:
    token = factories.token(cast.ben)
    program = APIClient(headers=factories.bearer(token))
    assert program.get("/api/v1/me").status_code == 200
    page = browse(cast.ada).get(url(cast)).content.decode()
    assert ">ben<" in page
    assert token.digest not in page
    answer = browse(cast.ada).post(url(cast), {"token": str(token.id)})
    assert (answer.status_code, answer.headers["Location"]) == (303, url(cast))
    assert program.get("/api/v1/me").status_code == 401
    told = AuditEvent.objects.get(action="token.revoke")
    assert (told.actor_name, told.project_id, told.after["user"]) == (
        "ada",
        cast.detection.id,
        str(cast.ben.id),
    )
    own = browse(cast.ben).get(reverse("token-list")).content.decode()
    assert "by ada" in own


@pytest.mark.parametrize(("who", "status"), [("cleo", 404), ("ben", 403), ("oz", 403)])
def test_who_does_not_own_the_place_sees_and_ends_nothing(
    browse: Browse, cast: Cast, who: str, status: int
) -> None:
    token = factories.token(cast.vik)
    client = browse(getattr(cast, who))
    assert client.get(url(cast)).status_code == status
    assert client.post(url(cast), {"token": str(token.id)}).status_code == status
    token.refresh_from_db()
    assert token.revoked_at is None


def test_what_does_not_reach_in_is_404_and_lives_on(browse: Browse, cast: Cast) -> None:
    for token in (factories.token(cast.cleo), factories.token(cast.oz)):
        assert browse(cast.ada).post(url(cast), {"token": str(token.id)}).status_code == 404
        token.refresh_from_db()
        assert token.revoked_at is None


def test_by_the_api_the_same(cast: Cast) -> None:
    api = APIClient()
    api.force_login(cast.ada)
    token = factories.token(cast.ben)
    at = f"?project={cast.detection.id}"
    [told] = api.get(f"/api/v1/reaching-tokens{at}").json()["items"]
    assert (told["user"], told["id"], "token" in told) == ("ben", str(token.id), False)
    both = f"{at}&tenant={cast.vision.id}"
    assert api.get(f"/api/v1/reaching-tokens{both}").status_code == 400
    assert api.delete(f"/api/v1/reaching-tokens/{token.id}{at}").status_code == 204
    assert api.delete(f"/api/v1/reaching-tokens/{token.id}{at}").status_code == 404
    assert Token.objects.get().revoked_by == "ada"


def test_who_owns_the_fleet_finds_its_tokens_beside_the_tenants(
    browse: Browse, cast: Cast
) -> None:
    fay = factories.user("fay")
    factories.member(fay, Role.OWNER)
    token = factories.token(cast.cleo)
    link = reverse("fleet-tokens")
    assert f'href="{link}"' in browse(fay).get(reverse("tenant-list")).content.decode()
    page = browse(fay).get(link)
    assert list(page.context["page"]) == [token]
    for other in (cast.ada, cast.oz, cast.cleo):
        assert link not in browse(other).get(reverse("tenant-list")).content.decode()
        assert browse(other).get(link).status_code == 403
