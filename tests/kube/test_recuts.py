"""A node of a real cluster is cut anew, as an operator says over the API: emptied of what runs
there, cut by its MIG manager, checked and opened; or cut back. With the rights of the manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.models import Flavor, FlavorKind, Node
from clusters.parts import Part
from clusters.port import NodeReport
from controlplane.audit.models import AuditEvent
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.recutting import recuts as loop
from scheduler.loop.recutting.steps import SETTLE
from scheduler.models import Recut, WorkloadEvent
from scheduler.services import recuts
from tenants.models import Member, Project, Role, User
from tests.flows.world import H100, Installation, furnish, spec
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.fixtures import AddNode
from tests.kube.manifests import added_by, apply, remove
from tests.kube.mig_manager import Manager, mig_manager
from tests.networks import LOOPBACK
from tests.waiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.django_db(transaction=True)]

SEVENTHS, HALVES = {"1g.10gb": 7}, {"3g.40gb": 2}
LONG = ("sleep", "600")
BEGUN = ("planned", "cordoning", "emptying", "cutting")


@dataclass
class Site(Installation):
    """One node of two GPUs, one of which is cut into sevenths."""

    kube: ControlPlane
    node: str
    ahead: timedelta = timedelta()

    def plan(self, mode: str) -> None:
        """By an operator: the one that is whole stays so, the other becomes halves."""
        oz = User.objects.create_user("oz")
        Member.objects.create(user=oz, role=Role.OPERATOR)
        client = APIClient(SERVER_NAME="localhost")
        client.force_authenticate(oz)
        body = {
            "node": self.node,
            "devices": [{"count": 1, "slices": HALVES}, {"count": 1, "slices": {}}],
            "mode": mode,
        }
        url = f"/api/v1/clusters/{self.cluster.id}/recuts"
        answer = client.post(url, body, format="json")
        assert answer.status_code == 201, answer.content

    @property
    def recut(self) -> Recut:
        return Recut.objects.get()

    @property
    def there(self) -> NodeReport:
        found = self.port.read_node(name=self.node)
        assert found is not None
        return found

    def turn(self) -> None:
        """Two minutes pass once the node is cordoned."""
        super().turn()
        at = now() + self.ahead
        loop.carry_on(port=self.port, cluster=self.cluster, at=lambda: at)
        state = self.recut.state if Recut.objects.exists() else ""
        if state == "emptying":
            self.ahead = SETTLE
        self.sync()

    def until_ended(self) -> Recut:
        self.until(lambda: not self.recut.live)
        return self.recut

    def told(self) -> list[str]:
        """Its states, by the audit trail."""
        events = AuditEvent.objects.filter(action__startswith="recut.").order_by("id")
        return [event.action.removeprefix("recut.") for event in events]


def role_is_seen(kube: ControlPlane, *, granted: bool) -> None:
    path = "/api/v1/nodes/nowhere"
    status = 404 if granted else 403
    eventually("the role is seen", lambda: kube.berth.call("GET", path).status == status)


@pytest.fixture
def manager(control_plane: ControlPlane) -> Iterator[Manager]:
    with mig_manager(control_plane.admin) as manager:
        yield manager


@pytest.fixture
def granted(control_plane: ControlPlane, manager: Manager) -> Iterator[None]:
    """What `cluster_manifest --mig` adds is applied."""
    added = added_by(Part.MIG, names=NAMES)
    apply(control_plane.admin, added)
    role_is_seen(control_plane, granted=True)
    yield
    remove(control_plane.admin, added)


@pytest.fixture
def site(control_plane: ControlPlane, add_node: AddNode) -> Iterator[Site]:
    """Its namespace has the node's name; Berth makes it."""
    node = add_node(gpus=1, mig=SEVENTHS)["metadata"]["name"]
    client = Client(
        server=control_plane.server,
        identity=control_plane.berth_token,
        allowed=LOOPBACK,
        ca_pem=control_plane.ca_pem,
    )
    world = furnish(KubernetesCluster(client, names=NAMES))
    Project.objects.filter(id=world.vision.id).update(namespace=node)
    world.vision.refresh_from_db()
    for profile in (*SEVENTHS, *HALVES):
        name = f"h100.{profile[:2]}"
        world.flavors[name] = Flavor.objects.create(
            name=name, kind=FlavorKind.MIG, model=H100, profile=profile
        )
        world.quota(world.vision, name, 16)
    yield Site(**vars(world), kube=control_plane, node=node)
    client.close()
    control_plane.admin.delete(f"/api/v1/namespaces/{node}/pods?gracePeriodSeconds=0")
    control_plane.admin.call("DELETE", f"/api/v1/namespaces/{node}")


def opened_as(site: Site, slices: dict[str, int]) -> None:
    """The node has these slices and one whole GPU, for the cluster and for Berth, and is open."""
    there = site.there
    assert (dict(there.mig_counts), there.mig_state) == (slices, "success")
    assert sorted(device.mode for device in there.devices) == ["mig-static", "whole"]
    assert (there.cordoned, there.schedulable, there.recut) == (False, True, "")
    row = Node.objects.get(name=site.node)
    assert row.schedulable
    told = [each for each in recuts.cut_now(node=row) if each]
    assert told == [slices]


@pytest.mark.usefixtures("granted")
def test_what_runs_there_is_preempted_and_work_starts_on_its_new_slices(site: Site) -> None:
    [victim] = site.submit(spec("h100.1g", command=LONG, name="victim", grace_s=1))
    site.until_state(victim, State.RUNNING)
    site.plan("preempt")
    recut = site.until_ended()
    assert (recut.state, recut.trouble) == ("done", "")
    assert site.told() == [*BEGUN, "checking", "opening", "done"]
    opened_as(site, HALVES)
    assert victim.attempts.get(number=1).outcome == "preempted"
    told = WorkloadEvent.objects.get(workload=victim, after="PREEMPTING").message
    assert told == f"the node {site.node} is cut anew, as oz planned"
    [halves] = site.submit(spec("h100.3g", name="halves"))
    site.until_state(halves, State.SUCCEEDED)
    victim.refresh_from_db()
    assert victim.state == State.PENDING


@pytest.mark.usefixtures("granted")
def test_a_cut_that_fails_once_work_has_ended_is_cut_back(site: Site, manager: Manager) -> None:
    manager.fails(site.node)
    [work] = site.submit(spec("h100.1g", command=("sleep", "3"), name="works"))
    site.until_state(work, State.RUNNING)
    site.plan("wait")
    site.turn()
    assert (site.there.cordoned, site.there.mig_config) == (True, "")
    recut = site.until_ended()
    assert (recut.state, recut.stuck) == ("failed", False)
    assert recut.trouble == "the MIG manager says failed"
    assert site.told() == [*BEGUN, "rolling-back", "opening", "failed"]
    opened_as(site, SEVENTHS)
    work.refresh_from_db()
    assert (work.state, work.attempts.count()) == (State.SUCCEEDED, 1)
    [again] = site.submit(spec("h100.1g", name="again"))
    site.until_state(again, State.SUCCEEDED)


@pytest.mark.usefixtures("manager")
def test_where_that_part_is_not_granted_nothing_begins(site: Site) -> None:
    role_is_seen(site.kube, granted=False)
    site.plan("wait")
    recut = site.until_ended()
    assert recut.state == "called-off"
    assert "nodes" in recut.trouble
    node: Json = site.kube.admin.get(f"/api/v1/nodes/{site.node}")
    assert not node["spec"].get("unschedulable")
