"""The life of a grant, by hand: asked for, weighed, trimmed and time-boxed, applied on two
clusters, over by itself."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import confine
from scheduler.models import Workload
from tenants.models import Member, Quota, Role, User
from tenants.services import grants
from tests.browser.conftest import SignIn
from tests.flows.losing import Pair, pair
from tests.flows.world import World, spec
from tests.waiting import eventually

LONG = ("sleep", "600")
DAY = timedelta(days=1)


@pytest.fixture
def shown(transactional_db: None) -> Iterator[Pair]:
    """Two simulated clusters with work of the project vision in each, instead of a scene of rows
    alone."""
    with pair() as both:
        for name, role in (("ben", Role.MEMBER), ("pia", Role.APPROVER)):
            user = User.objects.create_user(name, password=name)
            place = both.north.vision if role is Role.MEMBER else None
            Member.objects.create(user=user, role=role, project=place)
        for world in (both.north, both.south):
            confined(both, world)
        yield both


def confined(both: Pair, world: World) -> None:
    """By work that runs there, without which no cluster knows of the project."""
    name = world.cluster.name
    asked = replace(spec("h100", gpus=1, command=LONG, name=name), clusters=(name,))
    [work] = world.submit(asked)

    def runs() -> bool:
        both.turn()
        work.refresh_from_db()
        return work.state == State.RUNNING

    eventually(f"{name} runs", runs)


def follow(both: Pair) -> None:
    """As the tasks do within seconds."""
    confine.follow()
    for world in (both.north, both.south):
        confine.check(port=world.port, cluster_id=world.cluster.id, at=now)


def walls(both: Pair) -> list[int]:
    """How many GPUs each cluster itself lets the project's pods have."""
    return [gpus(world) for world in (both.north, both.south)]


def gpus(world: World) -> int:
    path = f"/api/v1/namespaces/{world.vision.namespace}/resourcequotas/berth"
    body = world.simulator.call("GET", path)
    return int(body["spec"]["hard"]["requests.nvidia.com/gpu"])


def test_from_the_request_to_the_end_of_the_grant(sign_in: SignIn, shown: Pair) -> None:
    Quota.objects.update(borrowing_limit_milli=0)
    follow(shown)
    before = walls(shown)
    ben, pia = sign_in("ben"), sign_in("pia")

    ben.goto("/requests/new")
    ben.get_by_label("Flavor", exact=True).select_option("h100")
    ben.get_by_label("New nominal quota", exact=True).fill("24")
    ben.get_by_label("Reason").fill("A larger model.")
    ben.get_by_role("button", name="Send the request").click()
    expect(ben.get_by_text("Somebody else has to answer your own request.")).to_be_visible()

    pia.goto("/requests")
    card = pia.locator(".quota-request", has_text="A larger model.")
    card.get_by_label("Grant as nominal quota").fill("20")
    card.get_by_role("link", name="What it does to others").click()
    expect(card.locator(".impact")).to_contain_text("If 20 h100 were granted now")
    until = (now() + 2 * DAY).replace(second=0, microsecond=0)
    card.get_by_role("textbox", name="Until").fill(until.strftime("%Y-%m-%dT%H:%M"))
    card.get_by_label("Note").fill("Until the review.")
    card.get_by_role("button", name="Grant").click()
    row = pia.get_by_role("row", name="Until the review.")
    expect(row).to_contain_text("20")
    for name in ("north", "south"):
        expect(row).to_contain_text(f"approved, not yet applied: {name}")
    assert walls(shown) == before

    follow(shown)
    assert walls(shown) == [gpus + 4 for gpus in before]
    expect(row).not_to_contain_text("not yet applied")
    assert Quota.objects.get(project__name="vision", flavor__name="h100").nominal_milli == 20_000

    grants.begin_and_end_due(at=until + timedelta(seconds=1))
    follow(shown)
    assert walls(shown) == before
    assert Quota.objects.get(project__name="vision", flavor__name="h100").nominal_milli == 16_000
    expect(row).to_contain_text("ended")
    # What ran went on all the while.
    assert set(Workload.objects.values_list("state", flat=True)) == {State.RUNNING}
