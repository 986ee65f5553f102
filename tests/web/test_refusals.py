"""What every page refuses alike: fields it does not have, bodies over the limit, projects of
others."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from controlplane.kernel.forms import StrictForm
from scheduler.models import Workload
from tenants.models import QuotaRequest, User
from tests import factories
from tests.api.columns import of_models
from tests.api.page_access_table import OTHERS
from tests.api.test_access_matrix import path_of
from tests.api.world import COLUMNS, build
from tests.conftest import Cast, Unchanged
from tests.web.conftest import HTMX, Browse, Shop
from tests.web.test_request_new import form as request_form
from tests.web.test_workload_submit import form as submit_form

type Forms = dict[str, tuple[str, User, Sent]]
type Sent = dict[str, Any]  # Any: form values

TOO_MUCH = 10 * 1024 * 1024
URLENCODED = "application/x-www-form-urlencoded"


@pytest.fixture
def quota_request(cast: Cast, shop: Shop) -> QuotaRequest:
    return factories.quota_request(cast.detection, shop.h100, cast.ben)


@pytest.fixture
def forms(cast: Cast, shop: Shop, quota_request: QuotaRequest) -> Forms:
    """Name of a form with fields → its address, who may send it, what is acceptable there."""
    decide = reverse("request-decide", args=[quota_request.id])
    return {
        "submit": (reverse("workload-submit"), cast.ben, submit_form(cast)),
        "request": (reverse("request-new"), cast.ben, request_form(cast)),
        "decision": (decide, cast.pia, {"decision": "grant", "version": 1, "quota_version": 1}),
    }


OF_ALLAUTH = {
    "sign-in/second-factor", "second-factor", "second-factor/proof",
}  # fmt: skip
"""Whose forms are its own: they read one code, and nothing of what else is posted."""
OF_PROVIDERS = {"sign-in/<slug:provider>/answer"}
"""Which are forms of a provider's page: what else it sends is its own matter."""
POSTS = [
    route
    for (_, route), row in OTHERS.items()
    if row.form and route not in OF_ALLAUTH | OF_PROVIDERS
]


NOBODYS = of_models() & {
    "created_at", "id", "is_active", "is_staff", "is_superuser", "requested_by", "service_project",
    "service_tenant", "submitted_by", "tenant_id", "user_id",
}  # fmt: skip
"""Columns that Berth alone writes: no form may come to have a field of that name."""


def unnoticed(route: str, cast: Cast, nothing_stored: Unchanged) -> set[str]:
    """Names of columns of any table, and one of none, that a page took without a word."""
    world, row = build(cast), OTHERS["POST", route]
    expected = dict(zip(COLUMNS, map(int, row.expect.split()), strict=True))
    who = next(
        (name for name, status in expected.items() if status in {200, 201, 303, 400, 422}), "owner"
    )
    names = {*of_models(), "no-such-field"}
    sent = dict.fromkeys(sorted(names), "x") | (dict(row.body(world)) if row.body else {})
    client = world.clients["anonymous" if route == "sign-in" else who]
    # A try to sign in is counted, whatever is sent.
    with nullcontext() if route == "sign-in" else nothing_stored():
        answer = client.post(path_of(route, row, world), sent, format="multipart")
    page = unescape(answer.content.decode())
    refused = re.search(r"There is no such field; known: (.*?)\.", page)
    if refused is None or answer.status_code not in {400, 422}:
        return names
    known = set(refused[1].split(", "))
    assert known.isdisjoint(NOBODYS)
    odd = names - known
    # Of a form with secrets no name is quoted: one may be among them.
    quoted = {name for name in odd if f"'{name}'" in page}
    return odd - quoted if quoted else set()


@pytest.mark.usefixtures("one_moment")
@pytest.mark.parametrize("route", POSTS)
def test_no_page_that_is_posted_to_overlooks_a_field(
    route: str, cast: Cast, nothing_stored: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.kernel.forms._NAMED", 10_000)
    assert unnoticed(route, cast, nothing_stored) == set()


def test_it_notices_a_form_that_is_not_strict(
    cast: Cast, nothing_stored: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrictForm, "clean", lambda self: self.cleaned_data)
    with pytest.raises(AssertionError):  # the project has another name
        unnoticed("projects/<uuid:id>/name", cast, nothing_stored)


@pytest.mark.parametrize("name", ["submit", "request", "decision"])
def test_an_unknown_field_is_named_and_nothing_is_stored(
    browse: Browse,
    forms: Forms,
    nothing_stored: Unchanged,
    name: str,
) -> None:
    url, who, sent = forms[name]
    client = browse(who)
    for odd in ({"owner": "x"}, {"owner": SimpleUploadedFile("x.txt", b"x")}):
        for headers in ({}, HTMX):
            with nothing_stored():
                answer = client.post(url, sent | odd, headers=headers)
            assert answer.status_code == 422
            page = answer.content.decode()
            assert "&#x27;owner&#x27;: There is no such field; known: " in page
    assert client.post(url, sent | {"csrfmiddlewaretoken": "x"}).status_code == 303


def test_the_known_fields_are_told_and_odd_names_are_harmless(browse: Browse, cast: Cast) -> None:
    client = browse(cast.ben)
    odd = {"<b>\u202e\x00": "x", "y" * 1000: "", **{f"z{n}": "" for n in range(9)}}
    page = client.post(reverse("request-new"), urlencode(odd), content_type=URLENCODED)
    [told] = page.context["form"].non_field_errors()
    assert told.startswith(r"'<b>\u202e\x00', '" + "y" * 60 + "', 'z0', 'z1', 'z2': ")
    lines = [f"{name}{n}" for name in ("amount", "flavor") for n in ("", "_2", "_3", "_4", "_5")]
    assert told.endswith(f"known: {', '.join(lines)}, from_at, project, reason, until_at.")
    assert "<b>\u202e" not in page.content.decode()


def test_a_button_takes_no_field(
    browse: Browse, cast: Cast, shop: Shop, nothing_stored: Unchanged
) -> None:
    client = browse(cast.ben)
    with nothing_stored():
        answer = client.post(reverse("workload-cancel", args=[shop.waiting.id]), {"reason": "x"})
    assert answer.status_code == 400
    assert "&#x27;reason&#x27;: There is no such field; known: none." in answer.content.decode()


@pytest.mark.parametrize("name", ["submit", "request", "decision"])
@pytest.mark.parametrize(
    ("kind", "head"),
    [
        (URLENCODED, b"reason="),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="reason"\r\n\r\n',
        ),
    ],
    ids=["plain", "multipart"],
)
def test_a_body_over_the_limit_gets_the_page_that_says_so(
    forms: Forms, nothing_stored: Unchanged, name: str, kind: str, head: bytes
) -> None:
    url, who, _ = forms[name]
    for checks in (False, True):
        client = Client(enforce_csrf_checks=checks)
        client.force_login(who)
        client.cookies["csrftoken"] = "a" * 32
        with nothing_stored():
            answer = client.post(url, head + b"a" * TOO_MUCH, content_type=kind)
        assert answer.status_code == 413
        assert "larger than 1 MiB. Nothing of it was stored." in answer.content.decode()


FOREIGN_FORMS: list[tuple[str, Callable[..., Sent]]] = [
    ("workload-submit", submit_form),
    ("request-new", request_form),
]


@pytest.mark.parametrize(("name", "form"), FOREIGN_FORMS)
def test_a_form_for_a_foreign_project_is_404_like_one_for_none(
    browse: Browse,
    cast: Cast,
    shop: Shop,
    nothing_stored: Unchanged,
    name: str,
    form: Callable[..., Sent],
) -> None:
    client = browse(cast.cleo)
    answers = []
    for project in (cast.detection.id, uuid4()):
        with nothing_stored():
            answer = client.post(reverse(name), form(cast, project=str(project)))
        assert answer.status_code == 404
        answers.append(answer.content)
    assert answers[0] == answers[1]
    assert client.post(reverse(name), form(cast, project="7")).status_code == 422


@pytest.mark.parametrize(
    "name", ["workload-submit", "request-new", "workload-list", "queue", "spend"]
)
def test_an_address_with_a_foreign_project_is_404(
    browse: Browse, cast: Cast, shop: Shop, name: str
) -> None:
    query = {"project": str(cast.detection.id)}
    assert browse(cast.ben).get(reverse(name), query).status_code == 200
    for headers in ({}, HTMX):
        assert browse(cast.cleo).get(reverse(name), query, headers=headers).status_code == 404


@pytest.mark.parametrize(
    "name", ["workload-submit", "request-new", "workload-list", "queue", "spend"]
)
def test_an_address_whose_project_is_no_id_is_404(browse: Browse, cast: Cast, name: str) -> None:
    assert browse(cast.ben).get(reverse(name), {"project": "detection"}).status_code == 404


def test_a_visible_project_without_the_right_is_no_choice(
    browse: Browse, cast: Cast, shop: Shop
) -> None:
    answer = browse(cast.vik).post(reverse("workload-submit"), submit_form(cast))
    assert answer.status_code == 422
    assert "project" in answer.context["form"].errors
    assert not Workload.objects.filter(name="finetune").exists()
