"""cluster-autoscaler's part in ProvisioningRequests, for the fake nodes of the control plane: it
accepts each, and some while later brings a node for each of its pods, all or none.

As the real one does, it goes by the requests and their templates, and tells by conditions.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kube.api import MERGE_PATCH, Api, Json
from tests.kube.gpu_nodes import gpu_node

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
LOOKS_EACH_S = 0.2
BRINGS_AFTER = 8
"""Looks between a request and its nodes."""


@contextmanager
def scale_up(admin: Api, *, most: int) -> Iterator[None]:
    """Up to so many nodes; a request for more than are left fails."""
    stop = threading.Event()
    thread = threading.Thread(target=_provision, args=[admin, most, stop], daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=10)
        assert not thread.is_alive()


def _provision(admin: Api, most: int, stop: threading.Event) -> None:
    age: dict[str, int] = {}
    while not stop.wait(LOOKS_EACH_S):
        for request in admin.get(REQUESTS)["items"]:
            uid = request["metadata"]["uid"]
            age[uid] = age.get(uid, 0) + 1
            if age[uid] == 1:
                say(admin, request, "Accepted")
            elif age[uid] == BRINGS_AFTER:
                [pods] = request["spec"]["podSets"]
                if pods["count"] > most:
                    say(admin, request, "Accepted", "Failed", message="the group has no more")
                    continue
                most -= pods["count"]
                for nth in range(pods["count"]):
                    _bring(admin, request, pods, nth)
                say(admin, request, "Accepted", "Provisioned")


def _bring(admin: Api, request: Json, pods: Json, nth: int) -> None:
    """A node of the group that the template selects, with GPUs for one such pod."""
    space = request["metadata"]["namespace"]
    template = pods["podTemplateRef"]["name"]
    pod = admin.get(f"/api/v1/namespaces/{space}/podtemplates/{template}")["template"]["spec"]
    gpus = int(pod["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
    node = gpu_node(
        f"{request['metadata']['name']}-{nth}",
        model="NVIDIA H100 80GB HBM3",
        gpus=gpus,
        memory_mib=81_559,
        cpu_milli=96_000,
        ram_mib=1_048_576,
        mig={},
    )
    node["metadata"]["labels"] |= pod["nodeSelector"]
    queued = {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"}
    node["spec"] = {**node.get("spec", {}), "taints": [queued]}
    admin.create("/api/v1/nodes", node)


def say(admin: Api, request: Json, *kinds: str, message: str = "") -> None:
    """These conditions are true, and no others. Of one that is gone there is nothing to say."""
    metadata = request["metadata"]
    told = [{"type": kind, "status": "True", "message": message} for kind in kinds]
    space = f"{REQUESTS.removesuffix('provisioningrequests')}namespaces/{metadata['namespace']}"
    path = f"{space}/provisioningrequests/{metadata['name']}"
    body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": told}}
    admin.call("PATCH", path, body, content_type=MERGE_PATCH)
