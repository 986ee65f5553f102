"""To know who asks, and what they may do, costs any page three queries each, whoever they are; but
for pages that tell what somebody else may do. The rows that a page is of are read at the door."""

import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.db import connection
from django.test import Client
from pytest_django import Settings

from controlplane.kernel import clock
from controlplane.portal import signed_in
from tenants.access import actor_for
from tenants.models import Role, User
from tenants.services import delegations
from tests import factories
from tests.browser import scene
from tests.web import lively_pages

SAID_BY = {
    ("/django/contrib/sessions/backends/db.py", "_get_session_from_db"): "who",
    ("/django/contrib/auth/__init__.py", "get_user"): "who",
    ("/controlplane/portal/second_factor.py", "process_view"): "who",
    ("/tenants/access.py", ""): "may",
    ("/tenants/ancestry.py", ""): "may",
}
"""By file and function, "" is any."""
MOST = 3
OF_OTHERS = {"/service-accounts/": 2}
"""For pages that tell what somebody else may do."""


def said_by(frame: FrameType | None) -> str:
    """What the query is for that is sent there: who asks, what they may do, at the "door" a row
    that the page is of, or what else it tells of."""
    while frame is not None:
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        for (path, only), what in SAID_BY.items():
            if file.endswith(path) and only in {"", function}:
                return "door" if function.endswith("_or_404") else what
        frame = frame.f_back
    return "page"


def counted(client: Client, url: str) -> Counter[str]:
    found: Counter[str] = Counter()

    def count(execute: Callable[..., Any], *args: Any) -> Any:  # Any: Django's
        found[said_by(sys._getframe(1))] += 1
        return execute(*args)

    with connection.execute_wrapper(count):
        assert client.get(url).status_code in {200, 403, 404}, url
    return found


def stand_in(shown: scene.Scene) -> User:
    """A member who decides for two approvers."""
    project = shown.projects["Detection"]
    made = factories.user("sam")
    factories.member(made, Role.MEMBER, at=project)
    factories.member(made, Role.VIEWER, at=project.tenant)
    for name in ("kim", "lou"):
        approver = factories.user(name)
        factories.member(approver, Role.APPROVER, at=project.tenant)
        delegations.make(
            actor=actor_for(user=approver), delegate="sam", from_at=None,
            until_at=shown.at + timedelta(days=7), at=shown.at,
        )  # fmt: skip
    return made


@pytest.mark.django_db
@pytest.mark.usefixtures("one_moment")
@pytest.mark.parametrize("asked_of", [(), (Role.APPROVER, Role.OPERATOR)], ids=["", "factor"])
def test_three_queries_are_enough(
    asked_of: tuple[Role, ...], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(signed_in, "_EVERY", timedelta(days=1))  # told as seen by the first page
    shown = scene.build(at=clock.now())
    people = {**shown.people, "sam": stand_in(shown)}
    settings.BERTH_MFA_ROLES = frozenset(asked_of)
    urls = {url for pages in lively_pages.by_person(shown).values() for url in pages.values()}
    seen: Counter[str] = Counter()
    for who in ("ada", "ben", "oz", "pia", "sam"):
        client = Client()
        client.force_login(people[who])
        if asked_of and who != "ben":
            Authenticator.objects.create(user=people[who], type="totp", data={})
        client.get("/")
        for url in sorted(urls):
            found = counted(client, url)
            of_others = next((more for path, more in OF_OTHERS.items() if path in url), 0)
            assert found["who"] <= MOST, (who, url, found)
            assert found["may"] <= MOST + of_others, (who, url, found)
            assert found["door"] <= 1, (who, url, found)
            if not of_others:
                seen |= found
    assert (seen["who"], seen["may"]) == ((3, 3) if asked_of else (2, 3))
