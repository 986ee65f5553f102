"""A security key from end to end, by Chromium's virtual one; and what a page says without."""

import pytest
from allauth.mfa.models import Authenticator
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_every_page import NARROW, WIDE, overflow


class Plugged:
    """A key in that page's computer, which its owner touches when asked, or does not."""

    def __init__(self, page: Page) -> None:
        self._chromium: CDPSession = page.context.new_cdp_session(page)
        self._chromium.send("WebAuthn.enable")
        options = {"protocol": "ctap2", "transport": "usb", "automaticPresenceSimulation": True}
        made = self._chromium.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self._which = {"authenticatorId": made["authenticatorId"]}

    def touched(self, *, touched: bool) -> None:
        self._chromium.send(
            "WebAuthn.setAutomaticPresenceSimulation", self._which | {"enabled": touched}
        )

    def unplug(self) -> None:
        self._chromium.send("WebAuthn.removeVirtualAuthenticator", self._which)


def add(page: Page, name: str) -> None:
    page.goto("/second-factor")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Add the key").click()


def sign_in_again(page: Page, name: str) -> None:
    page.locator("summary", has_text=name).click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(name)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("window", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_key_is_added_signs_in_and_is_removed(
    sign_in: SignIn, shown: Scene, theme: str, window: dict[str, int]
) -> None:
    page = sign_in("ben", viewport=window, color_scheme=theme)
    Plugged(page)
    add(page, "Blue")
    expect(page.locator("#codes")).to_be_visible()
    assert overflow(page) <= 0

    sign_in_again(page, "ben")
    assert overflow(page) <= 0
    page.get_by_role("button", name="Use a security key").click()
    page.wait_for_url("**/")
    page.goto("/second-factor")
    row = page.get_by_role("row", name="Blue")
    expect(row).to_contain_text("ago" if "ago" in row.inner_text() else "just now")
    assert overflow(page) <= 0

    page.get_by_role("button", name="Use a security key").click()
    page.on("dialog", lambda dialog: dialog.accept())
    remove = page.get_by_role("button", name="Remove Blue")
    expect(remove).to_be_visible()
    assert overflow(page) <= 0
    remove.click()
    expect(page.get_by_text("A password is all that you need now")).to_be_visible()
    assert not Authenticator.objects.exists()


def test_a_second_key_is_another_one(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    blue = Plugged(page)
    add(page, "Blue")
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("button", name="Use a security key").click()
    page.get_by_label("Name", exact=True).fill("Blue again")
    page.get_by_role("button", name="Add the key").click()
    expect(page.get_by_text("That key is yours already.")).to_be_visible()
    blue.unplug()
    Plugged(page)
    add(page, "Red")
    expect(page.get_by_text("Red is one of your keys.")).to_be_visible()
    expect(page.get_by_role("row", name="Red")).to_contain_text("never")


def test_a_key_that_is_not_there_is_told_and_a_code_opens(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    blue = Plugged(page)
    add(page, "Blue")
    code = (page.locator("#codes").text_content() or "").split()[0]
    blue.unplug()
    Plugged(page)  # another one, which knows nothing of ben
    sign_in_again(page, "ben")
    page.get_by_role("button", name="Use a security key").click()
    expect(page.get_by_role("alert")).to_contain_text("No key answered", timeout=60_000)
    expect(page.get_by_role("button", name="Use a security key")).to_be_enabled()
    page.get_by_label("Or a code").fill(code)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/")


def test_a_browser_without_says_so_and_takes_a_code(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    Plugged(page)
    add(page, "Blue")
    code = (page.locator("#codes").text_content() or "").split()[0]
    page.add_init_script("delete window.PublicKeyCredential")
    sign_in_again(page, "ben")
    expect(page.get_by_role("alert")).to_contain_text("This browser can't use security keys")
    expect(page.get_by_role("button", name="Use a security key")).to_be_hidden()
    page.get_by_label("Or a code").fill(code)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/")


def test_without_javascript_it_says_so_and_offers_the_app(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben", java_script_enabled=False)
    page.goto("/second-factor")
    expect(page.get_by_text("Security keys need JavaScript")).to_be_visible()
    expect(page.get_by_role("button", name="Add the key")).to_be_hidden()
    expect(page.get_by_label("Type the code that it shows")).to_be_visible()
