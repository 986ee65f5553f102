"""Making a token, copying it and ending it, wide and narrow, in both themes."""

import pytest
from playwright.sync_api import expect

from tenants.models import Token
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_every_page import NARROW, WIDE, overflow


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("window", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_token_is_made_copied_and_revoked(
    sign_in: SignIn, shown: Scene, theme: str, window: dict[str, int]
) -> None:
    page = sign_in("ben", viewport=window, color_scheme=theme)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("summary").click()
    page.get_by_role("link", name="API tokens").click()
    expect(page.get_by_text("No tokens")).to_be_visible()
    name = page.get_by_label("Name", exact=True)
    name.fill("nightly")
    page.get_by_label("Ask for quota").check()
    page.get_by_label("Expires").select_option("in a week")
    page.get_by_role("button", name="Make the token").click()

    secret = page.locator("#secret")
    expect(secret).to_be_focused()
    expect(secret).to_contain_text("berth_")
    assert overflow(page) <= 0
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret.text_content()
    assert Token.objects.get().scopes == ["quota", "read", "submit"]
    expect(name).to_have_value("")
    expect(page.get_by_label("Ask for quota")).not_to_be_checked()

    page.reload()  # as a page, which makes no second one
    expect(secret).to_have_count(0)
    assert overflow(page) <= 0
    assert Token.objects.count() == 1
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke nightly").click()
    expect(page.get_by_text("nightly is revoked")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke nightly")).to_have_count(0)


def test_a_refused_form_keeps_what_was_typed(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    page.goto("/tokens")
    page.get_by_label("Name", exact=True).fill("   ")
    page.get_by_label("Ask for quota").check()
    page.get_by_role("button", name="Make the token").click()
    expect(page.get_by_role("alert")).to_contain_text("Name")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    expect(page.get_by_label("Ask for quota")).to_be_checked()


def test_without_javascript_the_same_works(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben", java_script_enabled=False)
    page.goto("/tokens")
    page.get_by_label("Name", exact=True).fill("plain")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#secret")).to_contain_text("berth_")
    expect(page.get_by_role("button", name="Copy")).to_be_hidden()
    page.get_by_role("button", name="Revoke plain").click()
    expect(page.get_by_text("plain is revoked")).to_be_visible()
