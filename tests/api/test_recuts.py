"""Recuts over the API: previewed, planned, listed, called off; what a bad body is told."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from rest_framework.test import APIClient

from clusters.models import Cluster, Node
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Recut
from scheduler.models.recut import LONGEST
from tenants.models import User
from tests import factories
from tests.api.test_bad_input import refused
from tests.conftest import Cast

type Api = Callable[[User | None], APIClient]

pytestmark = pytest.mark.usefixtures("one_moment")
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
HALVES = [{"count": 2, "slices": {"3g.40gb": 2}}]
ASKED = {"node": "n1", "devices": HALVES}


@pytest.fixture
def node(cast: Cast) -> Node:
    return factories.node(factories.cluster(), gpus=2)


def url(rest: str = "") -> str:
    return f"/api/v1/clusters/{Cluster.objects.get().id}/recuts{rest}"


@pytest.mark.usefixtures("node")
def test_it_is_previewed_planned_listed_and_called_off(api: Api, cast: Cast) -> None:
    oz = api(cast.oz)
    shown = oz.post(url("/preview"), ASKED, format="json").json()
    assert shown == {
        "node": "n1",
        "now": [{"count": 2, "slices": {}}],
        "devices": HALVES,
        "stops": [],
        "waits_for": [],
        "foreign": False,
        "lost_s": 0,
        "at_once": True,
        "empty_at": None,
    }
    assert not Recut.objects.exists()
    planned = oz.post(url(), ASKED | {"mode": "preempt"}, format="json")
    assert planned.status_code == 201
    made = planned.json()
    assert (made["state"], made["mode"], made["planned_by"]) == ("planned", "preempt", "oz")
    assert oz.post(url(), ASKED | {"mode": "wait"}, format="json").status_code == 409
    [listed] = oz.get(url()).json()["recuts"]
    assert [step["state"] for step in listed.pop("steps")] == ["planned"]
    made.pop("steps")
    assert listed == made
    answers = [oz.delete(url(f"/{made['id']}")).status_code for _ in range(2)]
    assert answers == [204, 409]
    [listed] = oz.get(url()).json()["recuts"]
    assert (listed["state"], listed["trouble"]) == ("called-off", "called off by oz")


def test_who_would_be_stopped_is_named(api: Api, cast: Cast, node: Node) -> None:
    flavor = factories.flavor()
    factories.quota(cast.detection, flavor)
    for name, preemptible, ordinal in (("stops", True, 0), ("stays", False, 1)):
        work = factories.workload(
            cast.detection, cast.ben, [flavor], name, state=State.RUNNING, preemptible=preemptible
        )
        placement = factories.place(work, node, flavor)
        factories.span(placement, node.devices.get(ordinal=ordinal))
    shown = api(cast.oz).post(url("/preview"), ASKED, format="json").json()
    assert [each["name"] for each in shown["stops"]] == ["stops"]
    [waits] = shown["waits_for"]
    assert (waits["name"], waits["ends_at"]) == ("stays", None)
    assert (shown["at_once"], shown["empty_at"]) == (False, None)


@pytest.fixture
def sevenths(cast: Cast) -> Node:
    """A device in sevenths, where a half is waited for."""
    node = factories.node(factories.cluster(), gpus=1, mode="mig-static")
    for start in range(7):
        factories.device_slice(node.devices.get(), "1g.10gb", start, start + 1)
    flavor = factories.mig_flavor("h100-3g", "3g.40gb")
    factories.quota(cast.detection, flavor)
    work = factories.workload(cast.detection, cast.ben, [flavor])
    work.reason = {"code": "no-matching-flavor", "numbers": {}, "text": "No cluster has it."}
    work.save()
    return node


@pytest.mark.usefixtures("sevenths")
def test_what_had_better_be_cut_is_proposed(api: Api, cast: Cast) -> None:
    [made] = api(cast.oz).get(url("/proposals")).json()["proposals"]
    assert (made["node"], made["why"], made["serves"]) == ("n1", "waiting", 1)
    assert made["devices"] == [{"count": 1, "slices": {"3g.40gb": 2}}]
    assert (made["at_once"], made["empty_at"]) == (True, None)


@pytest.mark.parametrize(
    ("limit", "proposes"),
    [(LONGEST - HOUR, True), (LONGEST - HOUR + SECOND, False), (None, False)],
)
def test_a_node_that_has_to_be_waited_for_is_proposed_as_one(
    api: Api,
    cast: Cast,
    sevenths: Node,
    limit: timedelta | None,
    proposes: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where all of it ends within the longest window that there is."""
    now = clock.now().replace(microsecond=0)
    monkeypatch.setattr(clock, "now", lambda: now)
    flavor = factories.mig_flavor()
    work = factories.workload(
        cast.detection, cast.ben, [flavor], "stays", state=State.RUNNING, preemptible=False,
        started_at=now, run_time_limit_s=limit and limit // SECOND,
    )  # fmt: skip
    placement = factories.place(work, sevenths, flavor)
    factories.span(placement, sevenths.devices.get(), 0, 1)
    found = api(cast.oz).get(url("/proposals")).json()["proposals"]
    assert bool(found) is proposes
    for made in found:
        [waits] = made["waits_for"]
        assert (made["at_once"], waits["name"], waits["lost_s"]) == (False, "stays", 0)
        ends_at = now + (limit or HOUR)
        assert datetime.fromisoformat(made["empty_at"]) == ends_at
        assert datetime.fromisoformat(waits["ends_at"]) == ends_at
        body = {key: made[key] for key in ("node", "devices")} | {"mode": "wait"}
        window = {"ends_at": (ends_at + HOUR).isoformat()}
        assert api(cast.oz).post(url(), body | window, format="json").status_code == 201


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"node": ""}, ("/node", "blank")),
        ({"node": 1}, ("/node", "wrong-type")),
        ({"devices": []}, ("/devices", "empty")),
        ({"devices": [{"count": 0, "slices": {}}]}, ("/devices/0/count", "min-value")),
        ({"devices": [{"count": 1, "slices": {}}]}, ("/devices", "invalid")),
        ({"devices": [{"count": 2, "slices": {"3g.40gb": 3}}]}, ("/devices", "invalid")),
        ({"mode": "hurry"}, ("/mode", "invalid-choice")),
        ({"ends_at": "2000-01-01T00:00:00Z"}, ("/ends_at", "invalid")),
        ({"profile": "3g"}, ("/profile", "unknown-field")),
    ],
)
def test_what_is_wrong_is_said_field_by_field(
    api: Api, cast: Cast, change: dict[str, object], fault: tuple[str, str]
) -> None:
    answer = api(cast.oz).post(url(), {**ASKED, "mode": "wait"} | change, format="json")
    assert refused(answer) == [fault]
    assert not Recut.objects.exists()


def test_an_unknown_node_is_not_found(api: Api, cast: Cast, node: Node) -> None:
    answer = api(cast.oz).post(url("/preview"), ASKED | {"node": "n9"}, format="json")
    assert answer.status_code == 404
