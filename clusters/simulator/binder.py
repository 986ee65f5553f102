"""The simulated kube-scheduler: binds open pods to nodes with room, says why when there is none.

A pod that selects a hostname costs one look-up, however many nodes there are.
"""

from collections.abc import Callable
from typing import NamedTuple

from clusters.simulator import moments
from clusters.simulator.answers import Json
from clusters.simulator.claims import Claims
from clusters.simulator.migs import Cuts
from clusters.simulator.quantities import amount
from clusters.simulator.store import Store

HOSTNAME = "kubernetes.io/hostname"
_NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
_TOLERATED = "nvidia.com/gpu"
"""Admission lets pods that ask for GPUs stay there."""


class Holding(NamedTuple):
    node: str
    request: dict[str, int]


class Binder:
    """Free room by node, and the pods that wait for it by the hostname they select."""

    def __init__(self, store: Store, *, bound: Callable[[str], None]) -> None:
        self._store = store
        self._bound = bound
        self._claims = Claims(store)
        self._free: dict[str, dict[str, int]] = {}
        self._cuts: dict[str, Cuts] = {}
        self._names: dict[str, str] = {}  # by hostname
        self._held: dict[str, Holding] = {}
        self._waiting: dict[str, dict[str, None]] = {}  # hostname or "", then pods in order

    def set_node(self, node: Json) -> None:
        """A node is new, or has changed: count its room afresh and try who waits for it."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        free = {key: amount(key, text) for key, text in node["status"]["allocatable"].items()}
        self._cuts[name] = Cuts.of(node)
        for key, holding in self._held.items():
            if holding.node == name:
                _take(free, holding.request)
                self._cuts[name].take(key, holding.request)
        self._free[name] = free
        self._names[labels.get(HOSTNAME, name)] = name
        self._retry(name)

    def drop_node(self, name: str) -> None:
        self._free.pop(name, None)
        self._cuts.pop(name, None)
        self._names = {host: held for host, held in self._names.items() if held != name}

    def hold(self, key: str, pod: Json) -> None:
        """Count a pod that is bound already."""
        holding = Holding(pod["spec"]["nodeName"], _request(pod))
        self._held[key] = holding
        if holding.node in self._free:
            _take(self._free[holding.node], holding.request)
            self._cuts[holding.node].take(key, holding.request)

    def held_on(self, node: str) -> list[dict[str, int]]:
        """What each pod that is bound there asked for."""
        return [held.request for held in self._held.values() if held.node == node]

    def add(self, key: str, pod: Json) -> None:
        """A pod is open: bind it, or let it wait for room."""
        if not self._try(key, pod):
            self._waiting.setdefault(_hostname(pod), {})[key] = None

    def release(self, key: str) -> None:
        """A pod has ended or is gone."""
        for waiting in self._waiting.values():
            waiting.pop(key, None)
        if (pod := self._store.find("pods", key)) is not None:
            self._claims.ended(pod)
        holding = self._held.pop(key, None)
        if holding is None or holding.node not in self._free:
            return
        free = self._free[holding.node]
        for resource, count in holding.request.items():
            free[resource] = free.get(resource, 0) + count
        self._cuts[holding.node].give(key)
        self._retry(holding.node)

    def _retry(self, node: str) -> None:
        if not self._waiting:
            return
        body = self._store.find("nodes", node)
        hostname = (body or {"metadata": {}})["metadata"].get("labels", {}).get(HOSTNAME, node)
        for host in (hostname, ""):
            for key in list(self._waiting.get(host, ())):
                pod = self._store.find("pods", key)
                if pod is None or self._try(key, pod):
                    self._waiting[host].pop(key, None)
            if host in self._waiting and not self._waiting[host]:
                del self._waiting[host]

    def _try(self, key: str, pod: Json) -> bool:
        """Bind the pod if a node takes it; else write down why not, once."""
        request, selector = _request(pod), pod["spec"].get("nodeSelector") or {}
        refusals: dict[str, int] = {}
        for name in self._candidates(selector):
            refusal = self._refusal(name, pod, request, selector)
            if refusal is None:
                self._bind(key, pod, name, request)
                return True
            refusals[refusal] = refusals.get(refusal, 0) + 1
        self._explain(key, pod, refusals)
        return False

    def _candidates(self, selector: Json) -> list[str]:
        if HOSTNAME not in selector:
            return list(self._free)
        name = self._names.get(selector[HOSTNAME])
        return [name] if name is not None else []

    def _refusal(
        self, name: str, pod: Json, request: dict[str, int], selector: Json
    ) -> str | None:
        """Why this node does not take the pod, in the real scheduler's words; None if it does."""
        node = self._store.find("nodes", name)
        if node is None:
            return _NO_MATCH
        labels = node["metadata"].get("labels") or {}
        if any(labels.get(label) != value for label, value in selector.items()):
            return _NO_MATCH
        if any(label in labels for label in _avoided(pod)):
            return _NO_MATCH
        if node["spec"].get("unschedulable"):
            return "node(s) were unschedulable"
        tolerated = {one.get("key") for one in pod["spec"].get("tolerations") or ()}
        for taint in node["spec"].get("taints") or ():
            if taint["key"] not in tolerated | {_TOLERATED}:
                return (
                    f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
                )
        free = self._free[name]
        for resource, count in request.items():
            if free.get(resource, 0) < count:
                return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
        return self._cuts[name].refusal(request) or self._claims.refusal(pod, name)

    def _bind(self, key: str, pod: Json, node: str, request: dict[str, int]) -> None:
        _take(self._free[node], request)
        self._cuts[node].take(key, request)
        self._held[key] = Holding(node, request)
        self._claims.allocate(pod, node)
        pod["spec"]["nodeName"] = node
        _set_scheduled(pod, {"status": "True"})
        self._store.put("pods", key, pod)
        self._bound(key)

    def _explain(self, key: str, pod: Json, refusals: dict[str, int]) -> None:
        total = len(self._free)
        unmatched = total - sum(refusals.values())
        if unmatched:
            refusals[_NO_MATCH] = refusals.get(_NO_MATCH, 0) + unmatched
        full = sum(count for why, count in refusals.items() if why.startswith(("Insuff", "Too")))
        victims = [
            (full, "No preemption victims found for incoming pod"),
            (total - full, "Preemption is not helpful for scheduling"),
        ]
        message = (
            f"0/{total} nodes are available: "
            + ", ".join(f"{count} {why}" for why, count in sorted(refusals.items()))
            + f". no new claims to deallocate, preemption: 0/{total} nodes are available: "
            + ", ".join(f"{count} {why}" for count, why in victims if count)
            + "."
        )
        condition = {"status": "False", "reason": "Unschedulable", "message": message}
        if _set_scheduled(pod, condition):
            self._store.put("pods", key, pod)


def _set_scheduled(pod: Json, change: Json) -> bool:
    """Write the PodScheduled condition; False when it says that already."""
    conditions = pod["status"].setdefault("conditions", [])
    found = next((item for item in conditions if item["type"] == "PodScheduled"), None)
    if found is not None and found.get("message") == change.get("message", "") != "":
        return False
    at = moments.rfc3339(moments.now())
    fresh = {"type": "PodScheduled", "lastProbeTime": None, "lastTransitionTime": at, **change}
    pod["status"]["conditions"] = [item for item in conditions if item is not found] + [fresh]
    return True


def _avoided(pod: Json) -> list[str]:
    """The labels of which its one required term of node affinity says that they do not exist."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        each["key"]
        for term in required.get("nodeSelectorTerms", ())
        for each in term.get("matchExpressions", ())
        if each["operator"] == "DoesNotExist"
    ]


def _hostname(pod: Json) -> str:
    selector: Json = pod["spec"].get("nodeSelector") or {}
    return str(selector.get(HOSTNAME, ""))


def _request(pod: Json) -> dict[str, int]:
    total = {"pods": 1}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, text in asked.items():
            total[name] = total.get(name, 0) + amount(name, text)
    return total


def _take(free: dict[str, int], request: dict[str, int]) -> None:
    for resource, count in request.items():
        free[resource] = free.get(resource, 0) - count
