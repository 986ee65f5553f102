"""What is told of projects in a cluster, to whom, and the switch between repairing and telling."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from clusters.models import Cluster
from controlplane.audit.models import AuditEvent
from scheduler.models import Confinement
from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast, Unchanged
from tests.factories import AT

type Api = Callable[[User | None], APIClient]
DRIFT = [{"object": "NetworkPolicy berth", "field": "spec.ingress", "found": "[{}]", "wanted": ""}]


@pytest.fixture
def north(db: None) -> Cluster:
    return factories.cluster()


def confined(cluster: Cluster, project: Project, **fields: object) -> Confinement:
    row = Confinement(cluster=cluster, project=project, applied_at=AT, checked_at=AT)
    for name, value in fields.items():
        setattr(row, name, value)
    row.save()
    return row


def test_members_see_their_own_projects_and_operators_all(
    api: Api, cast: Cast, north: Cluster
) -> None:
    other = factories.project(factories.tenant("Elsewhere"), "Speech")
    confined(north, cast.detection, drift=DRIFT, drifted_at=AT)
    confined(north, other, error="forbidden")
    confined(factories.cluster("south"), cast.detection)
    url = f"/api/v1/clusters/{north.id}/projects"
    [seen] = api(cast.ben).get(url).json()["items"]
    assert seen["project"] == str(cast.detection.id)
    assert seen["namespace"] == cast.detection.namespace
    assert (seen["drift"], seen["repaired_at"], seen["error"]) == (DRIFT, None, "")
    assert len(api(cast.oz).get(url).json()["items"]) == 2
    [first] = api(cast.oz).get(f"{url}?limit=1").json()["items"]
    assert first == seen


def test_an_operator_has_drift_told_only_and_put_right_again(
    api: Api, cast: Cast, north: Cluster
) -> None:
    url = f"/api/v1/clusters/{north.id}/drift"
    for repair in (False, False, True):
        answer = api(cast.oz).post(url, {"repair": repair}, format="json")
        assert (answer.status_code, answer.json()) == (200, {"repair": repair})
        assert Cluster.objects.get().repair_drift is repair
        shown = api(cast.oz).get(f"/api/v1/clusters/{north.id}").json()
        assert shown["repair_drift"] is repair
    events = AuditEvent.objects.filter(action="cluster.repair-drift").order_by("id")
    assert [event.after for event in events] == [{"repair_drift": False}, {"repair_drift": True}]
    assert api(cast.ben).post(url, {"repair": False}, format="json").status_code == 403


def test_the_clusters_page_tells_fleet_roles_what_is_amiss_first(
    cast: Cast, north: Cluster
) -> None:
    confined(north, cast.detection)
    other = factories.project(cast.detection.tenant, "Speech")
    confined(north, other, drift=DRIFT, drifted_at=AT)
    browser = Client()
    browser.force_login(cast.oz)
    page = browser.get("/clusters/north").content.decode()
    assert "Projects here" in page
    assert page.index(other.namespace) < page.index(cast.detection.namespace)
    assert "NetworkPolicy berth spec.ingress is [{}]" in page
    assert "drift is put right" in page
    assert "not known" in page
    Confinement.objects.filter(project=other).update(repaired_at=AT, digest="d")
    Cluster.objects.update(repair_drift=False)
    page = browser.get("/clusters/north").content.decode()
    assert "drift is only told" in page
    assert "NetworkPolicy berth spec.ingress was [{}]" in page
    browser.force_login(cast.ben)
    assert "Projects here" not in browser.get("/clusters/north").content.decode()


def test_an_operator_switches_it_on_the_page(
    cast: Cast, north: Cluster, nothing_stored: Unchanged
) -> None:
    browser = Client()
    browser.force_login(cast.oz)
    url = reverse("cluster-drift-page", args=["north"])
    for drift, repair, offered in (
        ("tell", False, "Put drift right"), ("repair", True, "Only tell drift")
    ):  # fmt: skip
        page = browser.post(url, {"drift": drift}, follow=True).content.decode()
        assert Cluster.objects.get().repair_drift is repair
        assert f">{offered}</button>" in page
    [last, first] = AuditEvent.objects.order_by("-id")
    assert (first.action, first.after) == ("cluster.repair-drift", {"repair_drift": False})
    assert (last.actor_name, last.after) == ("oz", {"repair_drift": True})
    with nothing_stored():
        page = browser.post(url, {"drift": "perhaps"}, follow=True).content.decode()
    assert "Select a valid choice" in page
    browser.force_login(cast.pia)
    assert "Only tell drift" not in browser.get("/clusters/north").content.decode()


def test_what_is_amiss_is_counted_by_cluster(cast: Cast, north: Cluster, api: Api) -> None:
    other, third = (factories.project(cast.detection.tenant, name) for name in ("a", "b"))
    confined(north, cast.detection, drift=DRIFT, drifted_at=AT)
    confined(north, other, drift=DRIFT, drifted_at=AT, repaired_at=AT)
    confined(north, third, error="forbidden")
    confined(factories.cluster("south"), other)
    token = factories.token(cast.oz)
    text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
    found = [line for line in text.splitlines() if line.startswith("berth_confinements_amiss")]
    assert found == [
        'berth_confinements_amiss{cluster="north",state="drifted"} 1.0',
        'berth_confinements_amiss{cluster="north",state="failing"} 1.0',
        'berth_confinements_amiss{cluster="south",state="drifted"} 0.0',
        'berth_confinements_amiss{cluster="south",state="failing"} 0.0',
    ]
