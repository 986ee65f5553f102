"""Asking for quota and granting it: two people, two browsers."""

from playwright.sync_api import expect

from tenants.models import Quota, QuotaRequest
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene


def test_ben_asks_and_pia_grants(sign_in: SignIn, shown: Scene) -> None:
    QuotaRequest.objects.filter(decision="").delete()
    ben, pia = sign_in("ben"), sign_in("pia")
    pia.goto("/requests")
    ben.goto("/quota")
    ben.get_by_role("link", name="Ask for more").click()
    ben.get_by_label("Flavor", exact=True).select_option("h100-1g.10gb")
    ben.get_by_label("New nominal quota", exact=True).fill("6")
    ben.get_by_label("Reason").fill("Two more evaluation slices.")
    ben.get_by_role("button", name="Send the request").click()
    expect(ben.get_by_text("Two more evaluation slices.")).to_be_visible()
    expect(ben.get_by_role("button", name="Grant")).to_have_count(0)
    expect(ben.get_by_text("Somebody else has to answer your own request.")).to_be_visible()

    # It appears on pia's open page by itself.
    card = pia.locator(".quota-request", has_text="Two more evaluation slices.")
    expect(card).to_be_visible()
    card.get_by_label("Note").fill("Until the review.")
    pia.wait_for_timeout(6000)  # a poll later the half-written answer is still there
    expect(card.get_by_label("Note")).to_have_value("Until the review.")
    card.get_by_role("button", name="Grant").click()
    expect(pia.get_by_text("Detection may hold 6 h100-1g.10gb from now on.")).to_be_visible()

    quota = Quota.objects.get(project__name="Detection", flavor__name="h100-1g.10gb")
    assert quota.nominal_milli == 6000
    row = ben.get_by_role("row", name="Until the review.")
    expect(row).to_contain_text("Granted")
    ben.goto("/quota")
    expect(ben.locator(".bullet", has_text="h100-1g.10gb")).to_contain_text("of 6")


def test_a_denial_without_a_note_is_asked_for_one(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("pia")
    page.goto("/requests")
    card = page.locator(".quota-request", has_text="interns")
    card.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Say why it is denied.")).to_be_visible()
    card.get_by_label("Note").fill("After the A10 nodes are in.")
    card.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("row", name="After the A10 nodes are in.")).to_contain_text("Denied")
