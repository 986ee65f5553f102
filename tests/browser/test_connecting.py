"""Registering a cluster on its pages, against a simulated one, wide and narrow, in both themes."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from clusters.models import Cluster, ClusterProbe
from clusters.services import inventory
from controlplane.kernel import clock
from scheduler import tasks
from scheduler.loop.watching.hardware import arrange
from tests.browser.conftest import SignIn
from tests.browser.scene import Scene
from tests.browser.test_every_page import NARROW, WIDE, overflow
from tests.simulation import Simulator, simulation


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with simulation(layout="demo-south") as running:
        yield running


def probe() -> None:
    """As a dispatch worker does it."""
    newest = ClusterProbe.objects.filter(cluster__name="west").order_by("-id")[0]
    tasks.probe_cluster(probe_id=str(newest.id))


def list_nodes(simulator: Simulator) -> None:
    """As the watcher does it."""
    inventory.sync(
        cluster=Cluster.objects.get(name="west"),
        reports=simulator.connect().list_nodes().items,
        complete=True,
        at=clock.now(),
        arrange=arrange,
    )


@pytest.mark.parametrize(
    ("theme", "window"), [("light", WIDE), ("dark", NARROW)], ids=["light, wide", "dark, narrow"]
)
def test_a_cluster_is_registered_and_probed(
    sign_in: SignIn, shown: Scene, simulator: Simulator, theme: str, window: dict[str, int]
) -> None:
    page = sign_in("oz", viewport=window, color_scheme=theme)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/clusters")
    page.get_by_role("link", name="Register a cluster").click()
    page.get_by_label("Name").fill("west")
    page.get_by_label("Region").fill("Lisbon")
    page.get_by_label("API server URL").fill(simulator.server)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Let Berth into west")).to_be_visible()
    assert overflow(page) <= 0
    page.get_by_role("button", name="Copy").last.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as download:
        page.get_by_role("link", name="berth-cluster.yaml").click()
    assert download.value.suggested_filename == "berth-cluster.yaml"
    assert download.value.path().read_text() == copied
    page.get_by_role("link", name="Next: the credential").click()

    token = page.get_by_label("Token", exact=True)
    expect(page.get_by_label("API server URL")).to_have_value(simulator.server)
    token.fill("short")
    page.get_by_role("button", name="Seal, store and try it").click()
    expect(page.get_by_text("at least 16 characters")).to_be_visible()
    expect(token).to_be_focused()
    expect(token).to_have_value("")
    assert overflow(page) <= 0
    token.fill(simulator.token)
    page.keyboard.press("Enter")

    expect(page.get_by_text("it waits for a worker")).to_be_visible()
    expect(page.get_by_role("button", name="Probe again")).to_be_disabled()
    simulator.fault(kind="forbid", verb="delete", resource="pods", count=0)
    probe()
    expect(page.get_by_text(re.compile(r"1 of \d+ steps fail"))).to_be_visible()
    expect(page.get_by_text("it grants every right that is missing")).to_be_visible()
    assert overflow(page) <= 0
    simulator.heal()
    page.get_by_role("button", name="Probe again").click()
    expect(page.get_by_text("it waits for a worker")).to_be_visible()
    probe()
    expect(page.get_by_text(re.compile(r"All \d+ steps work"))).to_be_visible()
    list_nodes(simulator)
    expect(page.get_by_text("10 nodes, 40 GPUs.")).to_be_visible()
    expect(page.get_by_text("make one for")).to_be_visible()
    assert overflow(page) <= 0
    page.goto("/clusters/west")
    page.get_by_role("link", name="Connection").click()
    expect(page.get_by_text(re.compile(r"All \d+ steps work"))).to_be_visible()
