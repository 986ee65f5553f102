"""A policy is tried, said and met: its owner's browser, and that of who submits."""

from playwright.sync_api import expect

from scheduler.models import Workload
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_submit import fill


def test_what_an_owner_wants_is_told_to_who_submits_and_where_it_comes_from(
    sign_in: SignIn, shown: Scene
) -> None:
    Workload.objects.update(submitted_at=shown.at)
    ada, ben = sign_in("ada"), sign_in("ben")
    ada.goto(f"/tenants/{shown.projects['Detection'].tenant_id}")
    ada.get_by_role("link", name="Policy").click()
    ada.get_by_label("Runs at most").fill("90 min")
    ada.get_by_label("Labels that are wanted").fill("cost-centre: 4711, 4712")
    ada.get_by_role("button", name="Try it").click()
    trial = ada.get_by_role("region", name="What it would have refused")
    expect(trial).to_contain_text("Vision Lab wants a label cost-centre")
    expect(ada.get_by_text("Nothing is said")).to_be_visible()
    ada.get_by_role("button", name="Say it").click()
    expect(ada.get_by_text("from now on below Vision Lab.")).to_be_visible()
    expect(ada.get_by_role("row", name="Runs at most")).to_contain_text("90 min")

    fill(ben, "told")
    rules = ben.locator("#estimate")
    expect(rules).to_contain_text("cost-centre: 4711, 4712")
    expect(rules).to_contain_text("Vision Lab")
    ben.get_by_role("button", name="Submit").click()
    expect(ben.get_by_text("2 h is more than the 90 min that Vision Lab permits.")).to_be_visible()
    expect(
        ben.get_by_text("Vision Lab wants a label cost-centre, which is one of 4711, 4712.")
    ).to_be_visible()
    ben.get_by_role("spinbutton", name="Run-time limit").fill("1")
    ben.get_by_label("Labels").fill("cost-centre: 4712")
    ben.get_by_role("button", name="Submit").click()
    expect(ben.get_by_role("heading", name="told")).to_contain_text("Pending")
    made = Workload.objects.get(name="told")
    assert (made.labels, made.run_time_limit_s) == ({"cost-centre": "4712"}, 3600)
