"""Work on a real cluster whose devices a driver publishes: planned, claimed, and on exactly the
devices that it was placed on, by what kube-scheduler allocates."""

from collections.abc import Iterator

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.models import Cluster, Device, Flavor, FlavorKind
from clusters.parts import Part
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.loop.watching.claimed import Claimed
from scheduler.loop.watching.hardware import Hardware
from scheduler.loop.watching.published import Published
from scheduler.loop.watching.readers import SliceList
from scheduler.models import PlacementSpan, Workload
from tenants.models import Project
from tests.flows.world import Installation, furnish, spec
from tests.kube import resource_slices as made
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.fixtures import CLAIMS, AddNode, needs
from tests.kube.manifests import added_by, apply, remove
from tests.networks import LOOPBACK
from tests.waiting import eventually

pytestmark = [
    pytest.mark.kube,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def granted(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """What `cluster_manifest --dra` adds is applied."""
    needs(control_plane, *CLAIMS)
    added = added_by(Part.DRA, names=NAMES)
    apply(control_plane.admin, added)
    path = f"{made.PATH}?limit=1"
    eventually("Berth may look", lambda: control_plane.berth.call("GET", path).status == 200)
    yield control_plane
    remove(control_plane.admin, added)


class Site:
    """An installation, and one node of that cluster."""

    def __init__(self, world: Installation, kube: ControlPlane, node: str) -> None:
        self.world, self.kube, self.node = world, kube, node

    def publish(self, bodies: list[Json]) -> None:
        for body in bodies:
            self.kube.admin.create(made.PATH, body)
        self.look()

    def look(self) -> None:
        """At nodes and at what is published of them."""
        hardware = Hardware(self.world.cluster, now)
        hardware.nodes_listed(self.world.port.list_nodes().items)
        hardware.slices_listed(SliceList(self.world.port.list_resource_slices()))
        assert Cluster.objects.get().left_out["devices"]["count"] == 0

    def start(self, flavor: str, *, gpus: int = 1, count: int = 1) -> Workload:
        command = ("sleep", "600")
        [work] = self.world.submit(spec(flavor, gpus=gpus, count=count, command=command))
        return self.world.until_state(work, State.RUNNING)

    def placed(self, work: Workload) -> dict[str, set[str]]:
        """By pod, the names under which the driver publishes what it was placed on."""
        found: dict[str, set[str]] = {}
        spans = PlacementSpan.objects.filter(placement__workload=work, released_at__isnull=True)
        for span in spans.select_related("placement__flavor", "device"):
            nth = span.device.uuid.rsplit("-", 1)[1]
            name, profile = f"gpu-{nth}", span.placement.flavor.profile
            if profile:
                name += f"-mig-{profile.replace('.', '')}-{span.span.lower}"
            found.setdefault(span.placement.pod_name, set()).add(name)
        return found

    def allocated(self, work: Workload) -> dict[str, set[str]]:
        """By pod, what its claim was given."""
        path = f"/apis/resource.k8s.io/v1/namespaces/{self.world.vision.namespace}/resourceclaims"
        return {
            claim["metadata"]["name"]: {
                each["device"] for each in claim["status"]["allocation"]["devices"]["results"]
            }
            for claim in self.kube.admin.get(path)["items"]
            if claim["metadata"]["labels"]["berth.dev/workload"] == str(work.id)
        }


@pytest.fixture
def site(granted: ControlPlane, namespace: str, add_node: AddNode) -> Iterator[Site]:
    node = str(add_node(gpus=0)["metadata"]["name"])
    client = Client(
        server=granted.server,
        identity=granted.berth_token,
        allowed=LOOPBACK,
        ca_pem=granted.ca_pem,
    )
    world = furnish(KubernetesCluster(client, names=NAMES))
    Project.objects.filter(id=world.vision.id).update(namespace=namespace)
    world.vision.refresh_from_db()
    # As an administrator does for a namespace that is there before Berth.
    labels = {"metadata": {"labels": {NAMES.label_installation: NAMES.installation}}}
    path = f"/api/v1/namespaces/{namespace}"
    granted.admin.do("PATCH", path, labels, content_type="application/merge-patch+json")
    for profile in ("1g.10gb", "3g.40gb"):
        name = f"h100.{profile}"
        world.flavors[name] = Flavor.objects.create(
            name=name, kind=FlavorKind.MIG, model=made.BOARD, profile=profile
        )
        world.quota(world.vision, name, 16)
    yield Site(world, granted, node)
    for each in granted.admin.get(made.PATH)["items"]:
        granted.admin.delete(f"{made.PATH}/{each['metadata']['name']}")


def test_the_pods_of_a_gang_start_on_exactly_their_devices(site: Site) -> None:
    site.publish([made.published(site.node, [made.whole(site.node, nth) for nth in range(8)])])
    first = site.start("h100", gpus=2)
    gang = site.start("h100", gpus=1, count=3)
    for work in (first, gang):
        assert site.allocated(work) == site.placed(work)
    names = [
        name for work in (first, gang) for each in site.placed(work).values() for name in each
    ]
    assert len(names) == len(set(names)) == 5


def test_a_gang_goes_on_elsewhere_whole_when_its_driver_taints_one_of_its_devices(
    site: Site, add_node: AddNode
) -> None:
    """Kubernetes takes the pod on it away by itself."""
    nodes = [site.node, *(str(add_node(gpus=0)["metadata"]["name"]) for _ in range(2))]
    site.publish([made.published(node, [made.whole(node, 0)]) for node in nodes])
    gang = site.start("h100", count=2)
    before = PlacementSpan.objects.filter(placement__workload=gang).order_by("placement__rank")
    sick = before[1].device.node.name

    path = f"{made.PATH}/{sick}-0"
    taint = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}
    body = site.kube.admin.get(path)
    body["spec"]["devices"][0]["taints"] = [taint]
    site.kube.admin.do("PUT", path, body)
    site.look()

    def started_again() -> bool:
        site.world.turn()
        Workload.objects.update(not_before=None)
        gang.refresh_from_db()
        return gang.attempts.count() == 2 and gang.state == State.RUNNING

    eventually("it runs elsewhere", started_again)
    assert (gang.failures, gang.node_losses) == (0, 1)
    lost = gang.attempts.get(number=1)
    assert (lost.outcome, lost.failure) == ("lost", "node-lost")
    uuid = made.uuid(sick, 0)
    assert lost.trouble == f"its device was lost: {uuid} of node {sick} is sick or gone"
    live = PlacementSpan.objects.filter(placement__workload=gang, released_at=None)
    on = set(live.values_list("device__node__name", flat=True))
    assert on == {*nodes} - {sick}
    assert site.allocated(gang) == site.placed(gang)


def test_slices_of_one_device_start_where_they_were_placed(site: Site) -> None:
    site.publish(made.cuttable(site.node))
    works = [site.start("h100.1g.10gb"), site.start("h100.3g.40gb"), site.start("h100.1g.10gb")]
    placed = [name for work in works for each in site.placed(work).values() for name in each]
    assert len(set(placed)) == 3
    assert Device.objects.filter(uuid=made.uuid(site.node, 0), mode="mig-dynamic").count() == 1
    for work in works:
        assert site.allocated(work) == site.placed(work)


def test_nobody_else_makes_a_claim_that_passes_for_berths(site: Site) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{site.world.vision.namespace}/resourceclaims"
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "mine", "labels": {NAMES.label_workload: "w1"}},
        "spec": {
            "devices": {"requests": [{"name": "any", "exactly": {"deviceClassName": "berth"}}]}
        },
    }
    eventually(
        "it is refused",
        lambda: site.kube.admin.call("POST", f"{path}?dryRun=All", body).status == 403,
    )


def test_nor_one_that_takes_the_name_of_one(site: Site) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{site.world.vision.namespace}/resourceclaims"

    def status(name: str) -> int:
        asked = {"name": "any", "exactly": {"deviceClassName": "berth", "count": 8}}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [asked]}},
        }
        return site.kube.admin.call("POST", f"{path}?dryRun=All", body).status

    name = f"w{'0123456789abcdef' * 2}-1-0"
    eventually("it is refused", lambda: status(name) == 403)
    assert status(f"{name}-0") == 403
    assert status("theirs") == 201


def test_nobody_else_makes_a_pod_that_shares_a_claim_of_berths(site: Site) -> None:
    path = f"/api/v1/namespaces/{site.world.vision.namespace}/pods?dryRun=All"

    def status(claim: str) -> int:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "theirs"},
            "spec": {
                "containers": [{"name": "main", "image": "other"}],
                "resourceClaims": [{"name": "one", "resourceClaimName": claim}],
            },
        }
        return site.kube.admin.call("POST", path, body).status

    eventually("it is refused", lambda: status(f"w{'0123456789abcdef' * 2}-1-0") == 403)
    assert status("theirs") == 201


def test_who_asks_for_devices_by_count_holds_those_that_the_scheduler_claimed(site: Site) -> None:
    """A DeviceClass may map a resource of device plugins to what a driver publishes."""
    site.publish([made.published(site.node, [made.whole(site.node, nth) for nth in range(2)])])
    mapped: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "by-count"},
        "spec": {
            "extendedResourceName": "nvidia.com/gpu",
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}],
        },
    }
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    site.kube.admin.create(classes, mapped)
    limits = {"nvidia.com/gpu": "1"}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs"},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": site.node},
            "containers": [{"name": "main", "image": "other", "resources": {"limits": limits}}],
        },
    }
    space = site.kube.add_namespace()
    site.kube.admin.create(f"/api/v1/namespaces/{space}/pods", pod)
    claimed = Claimed(site.world.cluster)
    published = Published()
    published.listed(site.world.port.list_resource_slices().items)

    def held() -> set[tuple[str, int, int]] | None:
        claimed.listed(site.world.port.list_device_claims().items)
        return claimed.spans(published.places())

    [(device, start, end)] = eventually("one is held", held) or set()
    assert Device.objects.get(id=device).uuid in {made.uuid(site.node, nth) for nth in range(2)}
    assert (start, end) == (0, 1000)
    site.kube.admin.delete(f"{classes}/by-count")
    site.kube.admin.delete(f"/api/v1/namespaces/{space}")
