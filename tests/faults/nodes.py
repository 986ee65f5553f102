"""What befalls machines of the real cluster, and what Berth knows of them by then."""

from clusters.models import Device, Node
from tests.kube.api import MERGE_PATCH, Json
from tests.kube.control_plane import ControlPlane

_DEVICES = "nvidia.com/"


def lose(kube: ControlPlane, name: str) -> None:
    """It is taken out, and what ran there is removed, which the pod collector of a cluster does
    some time later."""
    kube.admin.delete(_path(name))
    for pod in kube.admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName={name}")["items"]:
        at = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        kube.admin.delete(f"{at}?gracePeriodSeconds=0")


def bring_back(kube: ControlPlane, made: Json) -> None:
    """As it was made."""
    metadata = {key: made["metadata"][key] for key in ("name", "labels", "annotations")}
    status = {key: made["status"][key] for key in ("capacity", "allocatable", "nodeInfo")}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    kube.admin.create("/api/v1/nodes", node)
    kube.wait_for_node(metadata["name"])


def silence(kube: ControlPlane, name: str) -> None:
    """It is not ready, as the control plane says of a kubelet that says nothing."""
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    labels = {"berth.test/silent": "true"}  # KWOK lets it be: see stages.yaml
    kube.admin.do("PATCH", _path(name), {"metadata": {"labels": labels}}, content_type=MERGE_PATCH)
    _patch_status(kube, name, {"conditions": [condition]})


def wake(kube: ControlPlane, name: str) -> None:
    labels = {"berth.test/silent": None}
    kube.admin.do("PATCH", _path(name), {"metadata": {"labels": labels}}, content_type=MERGE_PATCH)
    kube.wait_for_node(name)


def allocatable(kube: ControlPlane, name: str) -> dict[str, str]:
    """Its devices, by resource."""
    found = kube.admin.get(_path(name))["status"]["allocatable"]
    return {key: count for key, count in found.items() if key.startswith(_DEVICES)}


def allocate(kube: ControlPlane, name: str, devices: dict[str, str]) -> None:
    _patch_status(kube, name, {"allocatable": devices})


def is_known_ready(name: str) -> bool:
    return Node.objects.filter(name=name, gone_at__isnull=True, ready=True).exists()


def has_known_devices(name: str) -> bool:
    found = Device.objects.filter(node__name=name, gone_at__isnull=True)
    return found.exclude(mode="mig-static", slices__isnull=True).exists()


def _patch_status(kube: ControlPlane, name: str, status: Json) -> None:
    path = f"{_path(name)}/status"
    kube.admin.do("PATCH", path, {"status": status}, content_type=MERGE_PATCH)


def _path(name: str) -> str:
    return f"/api/v1/nodes/{name}"
