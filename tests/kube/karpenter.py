"""Karpenter for the fake nodes of the control plane: for each pod that fits nowhere and asks for a
node of a pool it orders one, within the pool's limit of nodes, and brings it some while later.

As the real one does, it goes by the pods and tells by NodeClaims; it never binds a pod.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kube.api import MERGE_PATCH, Api, Json
from tests.kube.gpu_nodes import gpu_node

KARPENTER = "/apis/karpenter.sh/v1"
POOL = "karpenter.sh/nodepool"
LOOKS_EACH_S = 0.2
BRINGS_AFTER = 4
"""Looks between the order and the node."""


@contextmanager
def karpenter(admin: Api) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=_provision, args=[admin, stop], daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=10)
        assert not thread.is_alive()


def claims(admin: Api) -> list[Json]:
    found: list[Json] = admin.get(f"{KARPENTER}/nodeclaims")["items"]
    return found


def _provision(admin: Api, stop: threading.Event) -> None:
    age: dict[str, int] = {}
    ordered: set[str] = set()
    while not stop.wait(LOOKS_EACH_S):
        pools = {p["metadata"]["name"]: p for p in admin.get(f"{KARPENTER}/nodepools")["items"]}
        for pod in admin.get("/api/v1/pods")["items"]:
            pool = (pod["spec"].get("nodeSelector") or {}).get(POOL)
            if (
                pool is not None
                and pool in pools
                and _fits_nowhere(pod)
                and pod["metadata"]["uid"] not in ordered
            ):
                made = [each for each in claims(admin) if each["metadata"]["labels"][POOL] == pool]
                if len(made) < int(pools[pool]["spec"]["limits"]["nodes"]):
                    ordered.add(pod["metadata"]["uid"])
                    _order(admin, pool, len(made) + 1)
        for claim in claims(admin):
            name = claim["metadata"]["name"]
            age[name] = age.get(name, 0) + 1
            if age[name] == BRINGS_AFTER:
                _bring(admin, claim)
            elif age[name] > BRINGS_AFTER and is_ready(admin, name):
                _say(admin, claim, "Launched", "Registered", "Initialized")


def _fits_nowhere(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return not pod["spec"].get("nodeName") and any(
        c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions
    )


def _order(admin: Api, pool: str, nth: int) -> None:
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"{pool}-{nth}", "labels": {POOL: pool}},
        "spec": {},
    }
    admin.create(f"{KARPENTER}/nodeclaims", body)


def _bring(admin: Api, claim: Json) -> None:
    bring(admin, claim["metadata"]["name"], pool=claim["metadata"]["labels"][POOL])
    _say(admin, claim, "Launched", "Registered")


def bring(admin: Api, name: str, *, pool: str) -> None:
    """A node of the pool with eight GPUs."""
    node = gpu_node(
        name,
        model="NVIDIA H100 80GB HBM3",
        gpus=8,
        memory_mib=81_559,
        cpu_milli=96_000,
        ram_mib=1_048_576,
        mig={},
    )
    node["metadata"]["labels"][POOL] = pool
    admin.create("/api/v1/nodes", node)


def is_ready(admin: Api, node: str) -> bool:
    """Whether work may start there: the control plane takes its taints off some while later."""
    found = admin.get(f"/api/v1/nodes/{node}")
    told = found["status"].get("conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in told)
    return ready and not found["spec"].get("taints")


def _say(admin: Api, claim: Json, *kinds: str) -> None:
    """These conditions are true, those that were since they were."""
    name = claim["metadata"]["name"]
    told = {c["type"]: c for c in (claim.get("status") or {}).get("conditions", [])}
    at = admin.get("/api/v1/nodes/" + name)["metadata"]["creationTimestamp"]
    for kind in kinds:
        told.setdefault(kind, {"type": kind, "status": "True", "lastTransitionTime": at})
    status = {"nodeName": name, "conditions": list(told.values())}
    path = f"{KARPENTER}/nodeclaims/{name}"
    admin.do("PATCH", path, {"status": status}, content_type=MERGE_PATCH)
