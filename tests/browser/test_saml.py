"""Signing in by SAML in a real browser: the provider is another site, so its form's post comes
without Berth's session, and the pages between have to bring it back under the content policy."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tenants.models import User
from tests.browser.conftest import Requests, Watch
from tests.browser.scene import Scene
from tests.browser.test_every_page import overflow
from tests.saml.running import RunningProvider, running


@pytest.fixture
def campus(
    tmp_path: Path, settings: Settings, live_server: LiveServer, shown: Scene
) -> Iterator[RunningProvider]:
    """At 127.0.0.1, as Berth is at localhost: to a browser those are two sites."""
    with running("campus", tmp_path) as made:
        settings.BERTH_PROVIDERS = {"campus": replace(made.told, groups_attribute="")}
        settings.BERTH_PUBLIC_URL = live_server.url
        made.settings = {
            "audience": live_server.url + reverse("provider-metadata", args=["campus"]),
            "answer_url": live_server.url + reverse("provider-answer", args=["campus"]),
        }
        made.knows("dot", uid="dot")
        yield made


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_somebody_signs_in_by_another_site(
    campus: RunningProvider,
    browser: Browser,
    live_server: LiveServer,
    watch: Watch,
    requests: Requests,
    scripts: bool,
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=scripts)
    page = context.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    watch.follow(page)
    page.goto("/sign-in?next=/spend")
    page.get_by_role("link", name="Sign in with Campus").click()
    page.locator("[name=login]").fill("dot")
    page.get_by_role("button", name="Sign in").click()
    if not scripts:
        page.get_by_role("button").click()  # the provider's
        expect(page.get_by_role("heading", name="Signing in")).to_be_visible()
        assert overflow(page) <= 0
        page.get_by_role("button", name="Go on").click()
    page.wait_for_url("**/spend")
    assert User.objects.get(socialaccount__provider="campus").username == "dot"
    page.wait_for_load_state("networkidle")
    context.close()
    requests.await_end()
