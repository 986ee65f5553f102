"""A walk through a running Berth, as two people at two browsers.

    python -m tests.browser.walk http://127.0.0.1:8000/

Ben submits a MIG workload, Cleo of another tenant a gang of 16 GPUs; both see theirs run on named
nodes, end, and appear as spend, without loading a page again by hand.
"""

import os
import re
import shutil
import sys
import time
from dataclasses import dataclass

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from controlplane.demo.logins import PASSWORD

WITHIN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Errand:
    """What somebody submits; `where` is how the pages name the nodes it may run on."""

    user: str
    project: str
    name: str
    flavor: str
    pods: int
    gpus: int
    seconds: int
    where: re.Pattern[str]


ERRANDS = (
    Errand("ben", "Segmentation", "walk-mig", "a100-80gb.3g.40gb", 1, 1, 20,
           re.compile(r"a100-mig-\d")),
    Errand("cleo", "Pretraining", "walk-gang", "h100-80gb", 2, 8, 20, re.compile(r"h100-\d")),
)  # fmt: skip


def walk(base_url: str) -> None:
    """All of it. Raises AssertionError where a page does not show what it should in time."""
    expect.set_options(timeout=WITHIN_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=[] if os.geteuid() else ["--no-sandbox"],
        )
        pages = [(errand, signed_in(browser, base_url, errand.user)) for errand in ERRANDS]
        for errand, page in pages:
            await_hardware(page, errand)
            submit(page, errand)
        for errand, page in pages:
            follow(page, errand)
        for errand, page in pages:
            see_spend(page, errand)
        browser.close()


def signed_in(browser: Browser, base_url: str, user: str) -> Page:
    page = browser.new_context(base_url=base_url).new_page()
    page.goto("/")
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    return page


def await_hardware(page: Page, errand: Errand) -> None:
    """Soon after the start the clusters' machines are listed; until then its flavor can't be
    chosen."""
    deadline = time.monotonic() + WITHIN_MS / 1000
    while True:
        page.goto("/workloads/new")
        if radio(page, errand).count():
            return
        assert time.monotonic() < deadline, f"{errand.flavor} did not come to be known"
        page.wait_for_timeout(500)


def radio(page: Page, errand: Errand) -> Locator:
    flavor = re.compile(rf"^{re.escape(errand.flavor)}(?![\w.])")
    return page.get_by_role("radio", name=flavor)


def submit(page: Page, errand: Errand) -> None:
    page.goto("/workloads/new")
    page.get_by_label("Name", exact=True).fill(errand.name)
    project = page.get_by_label("Project", exact=True)
    option = project.locator("option", has_text=errand.project).first
    project.select_option(value=option.get_attribute("value"))
    radio(page, errand).check()
    page.get_by_label("Pods", exact=True).fill(str(errand.pods))
    page.get_by_label("GPUs or slices per pod").fill(str(errand.gpus))
    page.get_by_label("Image").fill("busybox:1.37")
    page.get_by_label("Command line").fill(f"sleep {errand.seconds}")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name=errand.name)).to_be_visible()
    print(f"{errand.user} submitted {errand.name}: {page.url}")


def follow(page: Page, errand: Errand) -> None:
    heading = page.get_by_role("heading", name=errand.name)
    expect(heading).to_contain_text(re.compile("Running|Succeeded"))
    expect(page.locator("main")).to_contain_text(errand.where)
    print(f"{errand.name} runs")
    expect(heading).to_contain_text("Succeeded")
    print(f"{errand.name} has succeeded")


def see_spend(page: Page, errand: Errand) -> None:
    page.goto("/spend")
    expect(page.locator("main")).to_contain_text(errand.flavor)
    expect(page.locator("main")).to_contain_text(errand.project)
    print(f"{errand.user} sees {errand.flavor} under Spend")


if __name__ == "__main__":
    walk(sys.argv[1])
