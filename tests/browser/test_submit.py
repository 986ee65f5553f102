"""The main path by hand: sign in, submit a slice, see it wait with its reason, cancel it."""

from playwright.sync_api import Page, expect

from clusters.models import Device
from scheduler.core.lifecycle import State
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.models import Workload
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene


def fill(page: Page, name: str) -> None:
    page.get_by_role("link", name="Submit").first.click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("radio", name="h100-1g.10gb").check()
    page.get_by_role("spinbutton", name="Run-time limit").fill("2")
    page.get_by_label("Image").fill("example.org/train:1")
    page.get_by_label("Command line").fill("python train.py --epochs 3")


def test_a_slice_is_submitted_seen_waiting_and_cancelled(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    fill(page, "mig-try")
    estimate = page.locator("#estimate")
    expect(estimate).to_contain_text("€0.37 an hour")
    expect(estimate).to_contain_text("at most €0.74")
    expect(estimate).to_contain_text("7 h100-1g.10gb free now: enough in sum")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="mig-try")).to_contain_text("Pending")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("Submitted mig-try.")).to_be_visible()

    made = Workload.objects.get(name="mig-try")
    assert [s.flavors.get().name for s in made.pod_sets.all()] == ["h100-1g.10gb"]
    # The cycle writes why it waits; the page shows it without being loaded again.
    numbers = (("asked_milli", 1000), ("flavor", "h100-1g.10gb"), ("free_milli", 0))
    why = Reason(ReasonCode.NO_FREE_CAPACITY, numbers)
    told = {"code": why.code, "numbers": dict(numbers), "text": describe(why)}
    Workload.objects.filter(id=made.id).update(reason=told, reason_at=shown.at)
    expect(page.get_by_text(describe(why))).to_be_visible()

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel workload").click()
    expect(page.get_by_role("heading", name="mig-try")).to_contain_text("Cancelled")
    expect(page.get_by_role("button", name="Cancel workload")).to_have_count(0)
    made.refresh_from_db()
    assert made.state == State.CANCELLED


def test_a_refused_form_keeps_what_was_typed(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    fill(page, "too-many")
    page.get_by_label("GPUs or slices per pod").fill("64")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("GPUs or slices per pod")
    expect(page.get_by_text("Larger than the hardware")).to_be_visible()
    expect(page.locator("[autofocus]")).to_be_focused()
    expect(page.get_by_label("Command line")).to_have_value("python train.py --epochs 3")
    expect(page.get_by_role("radio", name="h100-1g.10gb")).to_be_checked()
    assert page.url.endswith("/workloads/new")
    assert not Workload.objects.filter(name="too-many").exists()
    # And it can be mended in place.
    page.get_by_label("GPUs or slices per pod").fill("1")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="too-many")).to_contain_text("Pending")


def test_the_first_field_at_fault_gets_the_focus(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben", viewport={"width": 390, "height": 844})
    fill(page, "no-pods")
    page.get_by_label("Pods", exact=True).fill("-3")
    page.get_by_role("button", name="Submit").click()
    pods = page.get_by_label("Pods", exact=True)
    expect(pods).to_be_focused()
    expect(pods).to_be_in_viewport()
    expect(page.get_by_text("Ensure this value is greater than or equal to 1.")).to_be_visible()


def test_a_follower_is_begun_at_the_page_of_what_it_waits_for(
    sign_in: SignIn, shown: Scene
) -> None:
    page = sign_in("ben")
    fill(page, "before")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Start other work after it").click()
    page.get_by_label("Name", exact=True).fill("behind")
    page.get_by_role("radio", name="h100-1g.10gb").check()
    page.get_by_label("Image").fill("example.org/train:1")
    page.get_by_label("Start optional", exact=True).select_option("After the end of")
    page.get_by_label("Its work failed").check()
    page.get_by_label("Or when it ends with exit code").fill("75, x")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("Or when it ends with exit code")
    page.get_by_label("Or when it ends with exit code").fill("75")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="behind")).to_contain_text("Pending")
    expect(page.get_by_role("link", name="before", exact=True)).to_be_visible()
    made = Workload.objects.get(name="behind")
    assert made.retry_exit_codes == [75]
    assert "exit-code" in made.retry_on


def test_only_the_fields_of_the_chosen_kind_show(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("cleo")
    page.goto("/workloads/new")
    gpus, share = page.get_by_label("GPUs or slices per pod"), page.get_by_label("Share of a GPU")
    page.get_by_role("radio", name="a10-shared").check()
    expect(gpus).to_be_hidden()
    expect(share).to_be_visible()
    page.get_by_role("radio", name="a100-1g.5gb").check()
    expect(gpus).to_be_visible()
    expect(share).to_be_hidden()
    page.get_by_role("radio", name="cpu").check()
    expect(gpus).to_be_hidden()
    expect(share).to_be_hidden()


def test_free_capacity_is_live_and_the_choice_stays(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben")
    page.goto("/workloads/new")
    page.get_by_role("radio", name="h100-1g.10gb").check()
    row = page.locator("tr", has=page.locator("[value='h100-80gb']"))
    expect(row).to_contain_text("9 of 31")
    Device.objects.filter(node__name="north-gpu-4", ordinal=7).update(usable=True)
    expect(row).to_contain_text("10 of 32")
    expect(page.get_by_role("radio", name="h100-1g.10gb")).to_be_checked()


def test_without_javascript_the_same_works(sign_in: SignIn, shown: Scene) -> None:
    page = sign_in("ben", java_script_enabled=False)
    fill(page, "plain-try")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="plain-try")).to_contain_text("Pending")
    page.get_by_role("button", name="Cancel workload").click()
    expect(page.get_by_role("heading", name="plain-try")).to_contain_text("Cancelled")
