"""/sign-in and /sign-out."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from controlplane.demo import logins
from tests.conftest import Cast
from tests.web.conftest import Browse

URL = reverse("login")


def test_a_name_and_password_lead_to_the_page_asked_for(cast: Cast) -> None:
    client = Client()
    asked = client.get(reverse("queue"))
    answer = client.post(asked.headers["Location"], {"username": "ben", "password": "ben"})
    assert answer.status_code == 302
    assert answer.headers["Location"] == reverse("queue")


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"username": "ben", "password": "wrong"}, "do not belong together"),
        ({"username": "nobody", "password": "wrong"}, "do not belong together"),
        ({}, "A name and a password are needed."),
        ({"username": "ben", "password": "ben", "role": "x"}, "There is no such field; known: "),
    ],
)
def test_what_is_wrong_is_said_and_nobody_is_signed_in(
    cast: Cast, sent: dict[str, str], told: str
) -> None:
    answer = Client().post(URL, sent)
    assert answer.status_code == 422
    assert told in answer.content.decode()
    assert "_auth_user_id" not in answer.client.session


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_only_a_post_signs_in(cast: Cast, method: str) -> None:
    client = Client()
    assert client.generic(method, URL).status_code == 405
    client.force_login(cast.ben)
    assert client.generic(method, URL).status_code == 405


def test_it_never_leads_elsewhere(cast: Cast) -> None:
    sent = {"username": "ben", "password": "ben", "next": "https://evil.example/"}
    assert Client().post(URL, sent).headers["Location"] == reverse("home")


def test_demo_logins_show_only_in_the_demo(db: None, settings: Settings) -> None:
    assert logins.PASSWORD not in Client().get(URL).content.decode()
    settings.BERTH_DEMO = True
    page = Client().get(URL).content.decode()
    assert logins.PASSWORD in page
    assert "ada" in page


def test_signing_out_is_a_post(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ben)
    assert client.get(reverse("logout")).status_code == 405
    assert client.post(reverse("logout"), {"next": "/"}).status_code == 400
    assert client.get(reverse("home")).status_code == 200
    assert client.post(reverse("logout")).headers["Location"] == URL
    assert client.get(reverse("home")).status_code == 302


def test_pages_are_not_kept_by_caches(browse: Browse, cast: Cast) -> None:
    assert "no-store" in browse(cast.ben).get(reverse("home")).headers["Cache-Control"]


def test_every_page_has_the_strict_policy(browse: Browse, cast: Cast) -> None:
    policy = browse(cast.ben).get(reverse("home")).headers["Content-Security-Policy"]
    assert "style-src 'self';" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
