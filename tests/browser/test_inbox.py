"""The inbox of an approver: by keyboard from end to end, and several at once by mouse."""

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tenants.models import QuotaRequest
from tests import factories
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene

DINO, NOTEBOOKS = "h100-80gb for Detection", "a10-shared for Evaluation"


@pytest.fixture
def inbox(sign_in: SignIn, shown: Scene) -> Page:
    """Of pia, with what ben and cleo ask."""
    page = sign_in("pia")
    page.goto("/requests")
    expect(page.locator("[data-request]")).to_have_count(2)
    return page


def card(page: Page, of: str) -> Locator:
    return page.locator(f'[data-request="{of}"]')


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def decisions() -> dict[str, str]:
    rows = QuotaRequest.objects.filter(flavor__name__in=("h100-80gb", "a10-shared"))
    return dict(rows.values_list("flavor__name", "decision"))


def questions(page: Page, *, accept: bool) -> list[str]:
    """What the page asks back from now on."""
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if accept else dialog.dismiss()

    page.on("dialog", answer)
    return asked


def test_keys_move_choose_and_lead_to_the_note(inbox: Page) -> None:
    press(inbox, "j")
    expect(card(inbox, DINO)).to_be_focused()
    outline = card(inbox, DINO).evaluate("e => getComputedStyle(e).outlineStyle")
    assert outline == "solid"
    press(inbox, "j")
    expect(card(inbox, NOTEBOOKS)).to_be_focused()
    press(inbox, "j", "ArrowUp")
    expect(card(inbox, DINO)).to_be_focused()
    press(inbox, "ArrowDown", "k")
    expect(card(inbox, DINO)).to_be_focused()
    box = card(inbox, DINO).get_by_role("checkbox", name=f"Choose {DINO}")
    press(inbox, "x")
    expect(box).to_be_checked()
    expect(inbox.locator("#chosen-count")).to_have_text("1 chosen")
    press(inbox, "x", "d")
    expect(box).not_to_be_checked()
    note = card(inbox, DINO).get_by_label("Note")
    expect(note).to_be_focused()
    expect(note).to_have_value("")
    # Where somebody types, a key is a letter.
    inbox.keyboard.type("jxgd?")
    expect(note).to_have_value("jxgd?")
    expect(note).to_be_focused()
    expect(inbox.locator("#keys")).not_to_be_visible()
    assert set(decisions().values()) == {""}


def test_the_page_and_a_list_tell_the_keys(inbox: Page) -> None:
    expect(inbox.locator(".key-line")).to_contain_text("x choose")
    press(inbox, "?")
    keys = inbox.get_by_role("dialog", name="Keyboard")
    expect(keys).to_contain_text("Grant it, or all chosen")
    press(inbox, "j", "x")  # not through the list
    expect(inbox.locator("#chosen-count")).to_have_text("None chosen")
    press(inbox, "Escape")
    expect(keys).not_to_be_visible()


def test_modifiers_and_the_switch_leave_the_keys_alone(inbox: Page) -> None:
    press(inbox, "j", "Control+x", "Alt+d")
    expect(card(inbox, DINO)).to_be_focused()
    expect(inbox.locator("#chosen-count")).to_have_text("None chosen")
    press(inbox, "?")
    inbox.get_by_label("Single-key shortcuts are on").uncheck()
    press(inbox, "Escape", "k", "x")
    expect(inbox.locator("#chosen-count")).to_have_text("None chosen")


@pytest.mark.parametrize("key", ["o", "Enter"])
def test_a_key_opens_what_it_does_to_others_and_keeps_the_focus(inbox: Page, key: str) -> None:
    press(inbox, "j", key)
    of = card(inbox, DINO)
    expect(of.get_by_text("were granted now")).to_be_visible()
    expect(of).to_be_focused()


def test_g_asks_back_and_grants(inbox: Page) -> None:
    asked = questions(inbox, accept=True)
    press(inbox, "j", "g")
    expect(inbox.get_by_text("Detection may hold 24 h100-80gb")).to_be_visible()
    assert asked == [f"Grant: 24 {DINO}?"]
    assert decisions() == {"h100-80gb": "granted", "a10-shared": ""}


def test_g_is_taken_back(inbox: Page) -> None:
    asked = questions(inbox, accept=False)
    press(inbox, "j", "g")
    expect(card(inbox, DINO)).to_be_focused()
    assert len(asked) == 1
    assert set(decisions().values()) == {""}
    press(inbox, "Escape", "g", "q")  # away from a request it is the key of pages again
    expect(inbox.get_by_role("heading", name="Queue", exact=True)).to_be_visible()


def test_all_chosen_are_denied_by_keyboard(inbox: Page) -> None:
    press(inbox, "j", "x", "j", "x", "d")
    expect(inbox.get_by_label("Note for each of them")).to_be_focused()
    inbox.keyboard.type("No room.")
    press(inbox, "Tab", "Tab", "Enter")
    expect(inbox.get_by_text("Denied: Detection, h100-80gb; Evaluation")).to_be_visible()
    assert set(decisions().values()) == {"denied"}


def test_what_is_chosen_stays_so_while_the_page_polls_and_each_is_told(
    inbox: Page, shown: Scene
) -> None:
    questions(inbox, accept=True)
    for of in (DINO, NOTEBOOKS):
        card(inbox, of).get_by_role("checkbox", name="Choose").check()
    # Somebody edits one, somebody asks for more: both show, and nothing is lost.
    QuotaRequest.objects.filter(flavor__name="a10-shared", decision="").update(
        version=2, reason="Three more notebooks."
    )
    factories.quota_request(
        shown.projects["Downscaling"], shown.flavors["h100-80gb"], shown.people["dora"]
    )
    expect(inbox.get_by_text("Three more notebooks.")).to_be_visible()
    expect(inbox.locator("[data-request]")).to_have_count(3)
    expect(inbox.locator("#chosen-count")).to_have_text("2 chosen")
    inbox.get_by_role("button", name="Grant as asked").click()
    expect(inbox.get_by_text("Granted: Detection, h100-80gb.")).to_be_visible()
    expect(inbox.get_by_text("Not decided: Evaluation, a10-shared.")).to_contain_text(
        "The request is at version 2 by now, not 1."
    )
    found = QuotaRequest.objects.filter(decision="granted", flavor__name="h100-80gb")
    assert [each.project.name for each in found] == ["Detection"]
