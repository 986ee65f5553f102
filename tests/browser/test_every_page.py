"""Every page, in both themes, wide and narrow: no complaint of the policy, no sideways scroll."""

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Workload
from tests import factories
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.service_accounts import service_account

NARROW = {"width": 390, "height": 844}
WIDE = {"width": 1440, "height": 900}

NOWHERE = "/no-such-page"
OF_OPERATORS = (
    "/register-cluster", "/clusters/north/manifest", "/clusters/north/credential",
    "/clusters/north/connection", "/clusters/east/connection",
    "/accounts", "/channels",
)  # fmt: skip


def addresses(shown: Scene) -> list[str]:
    works = (shown.running, shown.waiting, shown.ended)
    tenant = shown.projects["Detection"].tenant
    factories.reservation(tenant, shown.flavors["h100-80gb"], shown.people["oz"], note="A course.")
    return [
        "/", "/workloads", "/workloads?state=ended", "/workloads/new",
        *(f"/workloads/{work.id}" for work in works),
        "/queue", "/spend", "/spend?days=90", "/clusters", "/clusters/north",
        "/clusters/south", "/clusters/east", "/clusters/north?node=north-mig-5", "/quota",
        *(
            f"/projects/{shown.projects['Detection'].id}{end}"
            for end in ("", "/people", "/policy")
        ),
        f"/tenants/{tenant.id}",
        "/reservations", "/rates", "/requests", "/requests/new", "/approval-rules", "/delegations",
        "/tokens", "/sessions", "/mail", "/tenants", "/policy", "/group-roles",
        "/second-factor", "/audit", NOWHERE,
    ]  # fmt: skip


def of_owners(shown: Scene) -> list[str]:
    place = f"/projects/{shown.projects['Detection'].id}"
    account = service_account(shown.projects["Detection"])
    factories.token(account, "read", "submit", made_by=shown.people["ada"])
    ends = ("people", "service-accounts", "tokens")
    return [*(f"{place}/{end}" for end in ends), f"/service-accounts/{account.id}"]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    width: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("window", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("who", ["ben", "pia", "oz", "ada"])
def test_pages_fit_and_keep_to_the_policy(
    sign_in: SignIn, shown: Scene, theme: str, window: dict[str, int], who: str
) -> None:
    page = sign_in(who, viewport=window, color_scheme=theme)
    seen = of_owners(shown) if who == "ada" else addresses(shown)
    for address in [*seen, *(OF_OPERATORS if who == "oz" else ())]:
        page.goto(address)
        assert overflow(page) <= 0, address
        assert page.locator("html").get_attribute("data-bs-theme") == theme
        assert page.locator("h1").count() == 1, address
        known = page.locator(".menu-who", has_text=f"Signed in as {who}").count()
        assert known == (address != NOWHERE), address
        assert page.locator("[style]").count() == 0, address
        assert len(page.title()) > len("Berth"), address


def test_a_figure_is_larger_than_its_name_and_digits_stand_in_columns(
    sign_in: SignIn, shown: Scene
) -> None:
    page = sign_in("pia")

    def style(selector: str, name: str) -> str:
        found: str = page.locator(selector).first.evaluate(
            "(element, name) => getComputedStyle(element)[name]", name
        )
        return found

    named, value = (style(f".figure-card {part}", "fontSize") for part in ("dt", ".figure-value"))
    assert float(named.removesuffix("px")) * 1.5 < float(value.removesuffix("px"))
    page.goto("/spend")
    assert style(".num", "fontVariantNumeric") == "tabular-nums"


def test_ids_are_unique_and_fields_have_labels(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("oz")
    for address in [*addresses(shown), *OF_OPERATORS]:
        page.goto(address)
        doubled = page.evaluate(
            "[...document.querySelectorAll('[id]')].map(e => e.id)"
            ".filter((id, n, all) => all.indexOf(id) !== n)"
        )
        assert doubled == [], address
        bare = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.name)"
        )
        assert bare == [], address


def test_the_keyboard_reaches_pages_rows_and_filter(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/workloads")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("tbody .row-link").nth(1)
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("tbody .row-link").first).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("State")).to_be_focused()
    page.keyboard.press("Escape")
    page.goto("/workloads")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()


def test_a_change_shows_by_itself_and_keeps_the_focus(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    page.goto("/workloads")
    expect(page.locator("#rows")).to_have_attribute("hx-trigger", "every 3s")
    link = page.get_by_role("link", name="label-cleaning")
    link.focus()
    Workload.objects.filter(name="label-cleaning").update(state="PREEMPTING", version=2)
    row = page.locator("tr", has=link)
    expect(row).to_contain_text("Preempting")
    expect(link).to_be_focused()


def test_signing_out_while_a_page_polls_leads_to_sign_in(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    other = page.context.new_page()
    other.goto("/")
    other.locator("summary", has_text="ben").click()
    other.get_by_role("button", name="Sign out").click()
    page.bring_to_front()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
