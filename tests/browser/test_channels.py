"""Making a channel, copying its secret, trying and removing it, wide and narrow."""

import pytest
from playwright.sync_api import expect

from tenants.models import Channel, Delivery
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_every_page import NARROW, WIDE, overflow


@pytest.mark.parametrize("window", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_channel_is_made_tried_and_removed(
    sign_in: SignIn, shown: Scene, window: dict[str, int]
) -> None:
    page = sign_in("ada", viewport=window)
    page.goto(f"/projects/{shown.projects['Detection'].id}")
    page.get_by_role("link", name="Channels").click()
    expect(page.get_by_text("No channels")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Team chat")
    page.get_by_label("Address").fill("http://chat.example/hook")
    page.get_by_label("somebody asks for quota").uncheck()
    page.get_by_role("button", name="Make the channel").click()
    expect(page.get_by_text("https://host/path is wanted")).to_be_visible()
    page.get_by_label("Address").fill("https://chat.example/hook")
    page.get_by_role("button", name="Make the channel").click()

    expect(page.locator("#secret")).to_contain_text("berth_hook_")
    expect(page.get_by_role("row", name="Team chat")).to_contain_text("json to chat.example")
    assert overflow(page) <= 0
    assert "request.opened" not in Channel.objects.get().events
    page.reload()  # as a page, which makes no second one
    expect(page.locator("#secret")).to_have_count(0)
    page.get_by_role("button", name="Test Team chat").click()
    expect(page.get_by_text("A test goes to Team chat")).to_be_visible()
    Delivery.objects.update(failed_at=shown.at, error="It answered 404.")
    page.reload()
    expect(page.get_by_role("row", name="Team chat")).to_contain_text("It answered 404.")
    assert overflow(page) <= 0
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove Team chat").click()
    expect(page.get_by_text("Team chat is removed")).to_be_visible()
    expect(page.get_by_text("No channels")).to_be_visible()
