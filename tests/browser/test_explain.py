"""Checking a request before it is submitted, and reading why work waits."""

from playwright.sync_api import expect

from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_submit import fill
from tests.web.conftest import move


def test_a_request_is_checked_and_the_form_stays_as_it_is(sign_in: SignIn, shown: Scene) -> None:
    before = Workload.objects.count()
    page = sign_in("ben")
    fill(page, "tried")
    page.get_by_role("button", name="Check").click()
    check = page.locator("#check")
    expect(check).to_contain_text("It would start now on north")
    expect(page.get_by_label("Name", exact=True)).to_have_value("tried")
    expect(page.get_by_role("radio", name="h100-1g.10gb")).to_be_checked()

    page.get_by_label("GPUs or slices per pod").fill("64")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("GPUs or slices per pod")
    expect(page.get_by_text("Larger than the hardware")).to_be_visible()
    expect(page.get_by_label("Command line")).to_have_value("python train.py --epochs 3")

    page.get_by_label("GPUs or slices per pod").fill("1")
    page.get_by_role("button", name="Check").click()
    expect(check).to_contain_text("It would start now on north")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert Workload.objects.count() == before


def test_the_page_of_waiting_work_says_what_was_asked(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    page.goto(f"/workloads/{shown.waiting.id}")
    block = page.locator("#explanation")
    expect(block).to_contain_text("What the plan asks, in its order")
    expect(block).to_contain_text("Its project is open, and all tenants above it")
    block.get_by_role("link", name="Look again").click()
    expect(block).to_contain_text("Planned at")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


def test_the_explanation_goes_and_comes_with_the_waiting(sign_in: SignIn, shown: Scene) -> None:
    page, asked = sign_in("ben"), []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(f"/workloads/{shown.waiting.id}")
    block, heading = page.locator("#explanation"), page.get_by_role("heading", level=1)
    expect(block).to_contain_text("Its project is open, and all tenants above it")
    Workload.objects.filter(id=shown.waiting.id).update(name="renamed")
    expect(heading).to_contain_text("renamed")
    expect(block).to_contain_text("Its project is open, and all tenants above it")
    move(shown.waiting, State.ADMITTED)
    expect(block).to_have_count(0)
    move(shown.waiting, State.PENDING)
    expect(block).to_contain_text("Its project is open, and all tenants above it")
    assert sum(url.endswith("/explanation") for url in asked) == 2


def test_the_modes_are_compared_for_the_request_as_it_stands(
    sign_in: SignIn, shown: Scene
) -> None:
    page = sign_in("ben")
    fill(page, "which-mode")
    page.get_by_label("Pods", exact=True).fill("2")
    page.get_by_label("Start with at least").fill("1")
    page.get_by_role("radio", name="Semi-preemptible").check()
    page.get_by_role("button", name="Compare").click()
    modes = page.locator("#modes")
    expect(modes).to_contain_text("Planned at")
    semi = modes.get_by_role("row").filter(has_text="Semi-preemptible")
    expect(semi).to_contain_text("€0.37 to €0.74")
    expect(semi).to_contain_text("1 h100-1g.10gb")
    expect(page.get_by_role("radio", name="Semi-preemptible")).to_be_checked()
    expect(page.get_by_label("Start with at least")).to_have_value("1")
