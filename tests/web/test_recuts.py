"""/clusters/…/recuts: what is proposed, what one would stop, planning it, calling it off."""

from datetime import timedelta

import pytest
from django.urls import reverse

from clusters.models import Cluster, Node
from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock
from controlplane.kernel.throttle import Throttle
from controlplane.templatetags.berth import when
from scheduler.core.lifecycle import State
from scheduler.models import Recut
from scheduler.models.recut import LONGEST
from scheduler.services import asking
from tests import factories
from tests.conftest import Cast
from tests.web.conftest import HTMX, Browse

DAY = timedelta(days=1)
URL = reverse("cluster-recuts-page", args=["north"])
ASKED = {
    "node": "n1",
    "devices": "1: 3g.40gb=2\n1: whole",
    "mode": "wait",
    "starts_at": "2100-01-01T10:00",
    "ends_at": "2100-01-01T12:00",
}
pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture(autouse=True)
def node(cast: Cast) -> None:
    factories.node(factories.cluster(), gpus=2)


def test_a_preview_shows_the_node_now_and_then(browse: Browse, cast: Cast) -> None:
    page = browse(cast.oz).get(URL, {"node": "n1", "devices": ASKED["devices"]}).content.decode()
    assert "What it would stop now: n1" in page
    assert "Nothing there would have to be stopped." in page
    assert page.index(">Now<") < page.index(">Then<")
    assert not Recut.objects.exists()


def test_an_operator_plans_one_and_calls_it_off(browse: Browse, cast: Cast) -> None:
    client = browse(cast.oz)
    page = client.post(URL, ASKED, follow=True).content.decode()
    assert "A recut of n1 is planned." in page
    row = Recut.objects.get()
    assert (row.wanted, row.before) == ([{"3g.40gb": 2}, {}], [{}, {}])
    assert AuditEvent.objects.get().actor_name == "oz"
    off = reverse("cluster-recut-call-off", args=["north", row.id])
    assert "The recut of n1 is called off." in client.post(off, follow=True).content.decode()
    assert "can&#x27;t be called off any more" in client.post(off, follow=True).content.decode()


@pytest.fixture
def sevenths(cast: Cast) -> Node:
    """A device in sevenths, where a half is waited for."""
    cut = factories.node(Cluster.objects.get(), "n2", gpus=1, mode="mig-static")
    for start in range(7):
        factories.device_slice(cut.devices.get(), "1g.10gb", start, start + 1)
    flavor = factories.mig_flavor("h100-3g", "3g.40gb")
    factories.quota(cast.detection, flavor)
    work = factories.workload(cast.detection, cast.ben, [flavor])
    work.reason = {"code": "no-matching-flavor", "numbers": {}, "text": "No cluster has it."}
    work.save()
    return cut


@pytest.mark.usefixtures("sevenths")
def test_what_waits_is_told_of_a_node_that_would_serve_it(browse: Browse, cast: Cast) -> None:
    page = browse(cast.oz).get(URL).content.decode()
    assert "Proposed: n2" in page
    assert "Of what waits, 1 slice more would have room." in page
    assert "1: 3g.40gb=2" in page
    assert f'href="{URL}?node=n2&amp;devices=1%3A%203g.40gb%3D2#plan">Cut so</a>' in page
    assert "can be emptied at once" not in page


def test_a_node_that_has_to_be_waited_for_is_proposed_as_one(
    browse: Browse, cast: Cast, sevenths: Node
) -> None:
    """With a window in which it becomes empty."""
    now = clock.now().replace(microsecond=0)
    flavor = factories.mig_flavor()
    work = factories.workload(
        cast.detection, cast.ben, [flavor], "stays", state=State.RUNNING, preemptible=False,
        started_at=now, run_time_limit_s=2 * DAY // timedelta(seconds=1),
    )  # fmt: skip
    placement = factories.place(work, sevenths, flavor)
    factories.span(placement, sevenths.devices.get(), 0, 1)
    client, ends = browse(cast.oz), now + 2 * DAY
    answer = client.get(URL)
    page = answer.content.decode()
    assert "Proposed: n2" in page
    assert f"This one is empty by {when(ends)} at the latest" in page
    assert f">stays</a> (until {when(ends)} at the latest)." in page
    assert answer.context["form"].initial["ends_at"] == ends + timedelta(hours=1)
    shown = client.get(URL, {"node": "n2", "devices": "1: 3g.40gb=2"})
    assert shown.context["form"].initial["ends_at"] == ends + timedelta(hours=1)
    work.run_time_limit_s = 60
    work.save()
    assert client.get(URL).context["form"].initial["ends_at"] > now + DAY - timedelta(seconds=1)
    work.run_time_limit_s = 20 * DAY // timedelta(seconds=1)
    work.save()
    shown = client.get(URL, {"node": "n2", "devices": "1: 3g.40gb=2"})
    assert shown.context["form"].initial["ends_at"] <= clock.now() + LONGEST
    assert "Nothing to propose" in client.get(URL).content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"devices": "2: 3g.40gb"}, "is no such line"),
        ({"devices": "2: 3g.40gb=3"}, "No GPU can be cut so"),
        ({"devices": "3: whole"}, "n1 has 2 GPUs"),
        ({"node": "n9"}, "There is no such node."),
        ({"mode": "hurry"}, "Select a valid choice"),
        ({"extra": "1"}, "extra"),
    ],
)
def test_what_can_not_be_is_said(
    browse: Browse, cast: Cast, changes: dict[str, str], words: str
) -> None:
    answer = browse(cast.oz).post(URL, ASKED | changes)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    if "devices" in changes:
        answer = browse(cast.oz).get(URL, {"node": "n1", "devices": changes["devices"]})
        assert answer.status_code == 422
        assert words in answer.content.decode()
    assert not Recut.objects.exists()


def test_a_node_that_is_stuck_is_told_on_the_clusters_page(browse: Browse, cast: Cast) -> None:
    page = reverse("cluster-detail", args=["north"])
    oz = browse(cast.oz)
    node = Node.objects.get()
    rev = oz.get(page).context["rev"]
    factories.recut(node, state="failed", outcome="failed", stuck=True, ended_at=factories.AT)
    Node.objects.update(schedulable=False)
    told = oz.get(page, {"rev": rev}, headers=HTMX).content.decode()
    assert "n1 stays cordoned: a recut failed" in told
    assert f'<a href="{URL}">Recuts</a>' in told
    assert "stays cordoned" not in browse(cast.ben).get(page).content.decode()
    Node.objects.update(schedulable=True)
    assert "stays cordoned" not in oz.get(page).content.decode()


def test_who_asks_too_often_is_told_so(
    browse: Browse, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    client = browse(cast.oz)
    asked: tuple[dict[str, str], ...] = ({}, {}, {"node": "n1", "devices": ASKED["devices"]})
    answers = [client.get(URL, query) for query in asked]
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    for refused in answers[1:]:
        assert "At most 1 of these" in refused.content.decode()
        assert 0 < int(refused["Retry-After"]) <= 60
