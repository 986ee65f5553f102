"""Objects by resource, one revision counter, and the history that watches are served from.

Each object is encoded once per revision; lists and watches send those bytes. Pods are nested dicts
that their owners change in place and then `put` again.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import orjson

from clusters.simulator.answers import Json

RESOURCES = {
    "nodes": "Node",
    "pods": "Pod",
    "namespaces": "Namespace",
    "services": "Service",
    "resourcequotas": "ResourceQuota",
    "limitranges": "LimitRange",
    "serviceaccounts": "ServiceAccount",
    "networkpolicies": "NetworkPolicy",
    "priorityclasses": "PriorityClass",
    "configmaps": "ConfigMap",
    "resourceslices": "ResourceSlice",
    "deviceclasses": "DeviceClass",
    "resourceclaims": "ResourceClaim",
    "nodepools": "NodePool",
    "nodeclaims": "NodeClaim",
    "podtemplates": "PodTemplate",
    "provisioningrequests": "ProvisioningRequest",
}
GROUPS = {
    "networkpolicies": "networking.k8s.io",
    "priorityclasses": "scheduling.k8s.io",
    "resourceslices": "resource.k8s.io",
    "deviceclasses": "resource.k8s.io",
    "resourceclaims": "resource.k8s.io",
    "nodepools": "karpenter.sh",
    "nodeclaims": "karpenter.sh",
    "provisioningrequests": "autoscaling.x-k8s.io",
}
"""The API group of a resource that is not of the core one."""
OWNERS = "owners"
"""The table of what makes pods: objects of other API groups, of any kind. They can be read."""
_TABLES = (*RESOURCES, OWNERS)


class Change(NamedTuple):
    """One event of a resource. `raw` is the object after it (before it, when it was deleted)."""

    revision: int
    kind: str
    key: str
    labels: Json
    raw: bytes


class Entry(NamedTuple):
    body: Json
    raw: bytes


class History:
    """The last changes of one resource; positions count from the beginning of time."""

    def __init__(self, *, window: int, oldest: int) -> None:
        self._window = window
        self._changes: list[Change] = []
        self._dropped = 0
        self.oldest = oldest  # changes after this revision are all kept

    @property
    def end(self) -> int:
        return self._dropped + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._window * 2:
            self._drop(len(self._changes) - self._window)

    def forget(self, revision: int) -> None:
        """As if compacted: whoever asks for what came before `revision` has to list again."""
        self._drop(len(self._changes))
        self.oldest = revision

    def position_after(self, revision: int) -> int:
        """Where a watch from that revision begins."""
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._dropped + low

    def since(self, position: int) -> list[Change] | None:
        """The changes from a position on; None when they are no longer all kept."""
        if position < self._dropped:
            return None
        return self._changes[position - self._dropped :]

    def _drop(self, count: int) -> None:
        if count:
            self.oldest = self._changes[count - 1].revision
            del self._changes[:count]
            self._dropped += count


class Store:
    """Every object of the simulated cluster."""

    def __init__(self, *, revision: int = 1000, window: int = 10_000) -> None:
        self.revision = revision
        self.tables: dict[str, dict[str, Entry]] = {name: {} for name in _TABLES}
        self.histories = {name: History(window=window, oldest=revision) for name in _TABLES}
        self._listeners: dict[str, set[Callable[[], None]]] = {name: set() for name in _TABLES}

    def find(self, resource: str, key: str) -> Json | None:
        entry = self.tables[resource].get(key)
        return entry.body if entry is not None else None

    def bodies(self, resource: str) -> Iterator[Json]:
        for entry in self.tables[resource].values():
            yield entry.body

    def put(self, resource: str, key: str, body: Json) -> bytes:
        """Store a new or changed object under the next revision; its JSON."""
        table = self.tables[resource]
        kind = "MODIFIED" if key in table else "ADDED"
        raw = self._record(resource, kind, key, body)
        table[key] = Entry(body, raw)
        return raw

    def remove(self, resource: str, key: str) -> bytes:
        """Delete an object; the JSON of its last state."""
        entry = self.tables[resource].pop(key)
        return self._record(resource, "DELETED", key, entry.body)

    def restore(self, resource: str, key: str, body: Json) -> None:
        """Put an object back as it was, without an event."""
        self.tables[resource][key] = Entry(body, orjson.dumps(body))

    def listen(self, resource: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` on each change of the resource; returns what ends that."""
        self._listeners[resource].add(wake)
        return lambda: self._listeners[resource].discard(wake)

    def _record(self, resource: str, kind: str, key: str, body: Json) -> bytes:
        self.revision += 1
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        raw = orjson.dumps(body)
        labels = metadata.get("labels") or {}
        self.histories[resource].append(Change(self.revision, kind, key, labels, raw))
        for wake in self._listeners[resource]:
            wake()
        return raw
