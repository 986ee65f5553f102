"""Chromium on a live server with a lively installation behind it.

Playwright's own browser is not downloaded: Debian's Chromium does.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from threading import Condition
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from controlplane.kernel import clock
from tests import parts
from tests.browser import scene
from tests.browser.scene import Scene
from tests.waiting import PATIENCE_S

expect.set_options(timeout=1000 * PATIENCE_S)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Playwright runs an event loop in the thread that also builds the rows.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

SignIn = Callable[..., Page]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Any: Playwright's options. Root, as in CI containers, can't have the sandbox."""
    if CHROMIUM is None:
        parts.missing(parts.BROWSER, "Chromium (Debian: apt install chromium)")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    return browser_type_launch_args | {"executable_path": CHROMIUM, "args": sandbox}


@pytest.fixture
def shown(transactional_db: None, settings: Settings) -> Scene:
    settings.BERTH_DEMO = True
    return scene.build(at=clock.now().replace(microsecond=0))


class Watch:
    """What pages complained of."""

    def __init__(self) -> None:
        self.complaints: list[str] = []

    def follow(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        # A 4xx or 5xx answer is the test's own matter; the browser tells of it as an error too.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """No page of a test may complain, of the content policy above all."""
    watching = Watch()
    yield watching
    assert watching.complaints == []


class Requests:
    """Those that the live server, a thread of this process, is answering."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._open = 0

    def began(self, **_: object) -> None:
        self._count(1)

    def ended(self, **_: object) -> None:
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._changed:
            self._open += more
            self._changed.notify_all()

    def await_end(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._open <= 0, timeout=60)


@pytest.fixture
def requests() -> Iterator[Requests]:
    found = Requests()
    request_started.connect(found.began)
    request_finished.connect(found.ended)
    yield found
    request_started.disconnect(found.began)
    request_finished.disconnect(found.ended)


@pytest.fixture
def sign_in(
    browser: Browser, live_server: LiveServer, shown: Scene, watch: Watch, requests: Requests
) -> Iterator[SignIn]:
    """Opens a browser of that person, signed in through the form; keywords are Playwright's."""
    contexts = []

    def opened(name: str, **options: Any) -> Page:  # Any: Playwright's options
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        page = context.new_page()
        watch.follow(page)
        page.goto("/sign-in")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password", exact=True).fill(name)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/")
        return page

    yield opened
    # What a page asks for late would meet the next test's database.
    for context in contexts:
        for page in context.pages:
            page.wait_for_load_state("networkidle")
        context.close()
    requests.await_end()
