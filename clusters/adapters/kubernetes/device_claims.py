"""Pure: the claim by which a pod gets its certain devices, and no others; and claims as reports.

Ours is made after its pod, which waits behind its gate, and is owned by it: so it never stays when
the pod goes, whoever dies in between.
"""

import hashlib
from urllib.parse import quote

import orjson

from clusters.adapters.kubernetes.checks import Json, label_words, mapping, objects, word
from clusters.adapters.kubernetes.claim_templates import OF_POD, narrowed
from clusters.adapters.kubernetes.drivers import DRIVERS, selector
from clusters.adapters.kubernetes.manifests import pod_labels
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.translate import owner
from clusters.claiming import GivenDevices
from clusters.port import PodRequest
from clusters.published import DeviceClaimReport

API = "resource.k8s.io/v1"
RESOURCE_SLICES = f"/apis/{API}/resourceslices"
DEVICE_CLAIMS = f"/apis/{API}/resourceclaims"
DEVICE_CLASSES = f"/apis/{API}/deviceclasses"
OURS = "^w[0-9a-f]{32}-[0-9]+-[0-9]+(-[0-9]{1,2})?$"
"""What claims of ours are called: as their pods, by workload, attempt and rank; where others made
those, and named several claims, by a number, too."""


def claims_path(namespace: str, name: str = "") -> str:
    within = f"/apis/{API}/namespaces/{quote(namespace, safe='')}/resourceclaims"
    return f"{within}/{quote(name, safe='')}" if name else within


def template_path(namespace: str, name: str) -> str:
    within = f"/apis/{API}/namespaces/{quote(namespace, safe='')}/resourceclaimtemplates"
    return f"{within}/{quote(name, safe='')}"


def claim(request: PodRequest, *, uid: str, names: Names) -> Json:
    """For the pod of that uid, which was made of the request. It asks for each device apart."""
    labels = pod_labels(
        workload=request.workload, attempt=request.attempt, rank=request.rank, names=names
    )
    spec = {
        "devices": {
            "requests": [
                {
                    "name": f"device-{nth}",
                    "exactly": {
                        "deviceClassName": names.own,
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "selectors": [{"cel": {"expression": selector(pin)}}],
                    },
                }
                for nth, pin in enumerate(request.pins)
            ]
        }
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": request.name, "uid": uid}
    return _claim(request.namespace, request.name, labels, spec, owner, names=names)


def instead(given: GivenDevices, *, names: Names) -> dict[str, Json]:
    """By the pod's own word for each, the claims that it is to have in place of those that a
    controller made from its templates."""
    labels = pod_labels(
        workload=given.workload, attempt=given.attempt, rank=given.rank, names=names
    )
    owner: Json = {"apiVersion": "v1", "kind": "Pod", "name": given.name, "uid": given.uid}
    owner["controller"] = True
    found: dict[str, Json] = {}
    pins = given.pins
    for nth, claim in enumerate(dict.fromkeys(each.claim for each in given.requests)):
        own = [each for each in given.requests if each.claim == claim]
        count = sum(each.count for each in own)
        spec, pins = narrowed(own, pins[:count]), pins[count:]
        name = f"{given.prefix}-{nth}"
        found[claim] = _claim(given.namespace, name, labels, spec, owner, names=names)
        found[claim]["metadata"]["annotations"][OF_POD] = claim
    return found


def _claim(
    namespace: str, name: str, labels: Json, spec: Json, owner: Json, *, names: Names
) -> Json:
    digest = hashlib.sha256(orjson.dumps([labels, spec], option=orjson.OPT_SORT_KEYS))
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {names.annotation_hash: digest.hexdigest()},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def device_claim(body: Json, *, names: Names) -> DeviceClaimReport:
    """The report of a raw ResourceClaim. Raises Malformed for one that makes no sense."""
    metadata = mapping(body, "metadata")
    installation, workload, attempt, rank = owner(label_words(metadata), names=names)
    given = mapping(mapping(mapping(body, "status"), "allocation"), "devices")
    return DeviceClaimReport(
        namespace=word(metadata, "namespace"),
        name=word(metadata, "name"),
        installation=installation,
        workload=workload,
        attempt=attempt,
        rank=rank,
        devices=tuple(
            (word(each, "driver"), word(each, "pool"), word(each, "device"))
            for each in objects(given, "results")
            if each.get("adminAccess") is not True  # who looks after a device takes it from nobody
        ),
    )


def device_class(*, names: Names) -> Json:
    """What Berth's claims ask for, each with a selector of its own besides."""
    drivers = ", ".join(f"'{driver}'" for driver in DRIVERS)
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": names.own, "labels": {"app.kubernetes.io/name": "berth"}},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver in [{drivers}]"}}]},
    }
