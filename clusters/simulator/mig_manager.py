"""The simulated MIG managers: each cuts its node as that's label says, and tells how far it is.

They do as NVIDIA's does: only another value of the label wakes one; then it looks that up in the
config map, says "pending", and "success" or "failed" when it is done. A device that a pod holds
can't be cut.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import NoReturn

import yaml

from clusters.simulator.answers import Json
from clusters.simulator.binder import Binder
from clusters.simulator.store import Store

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
NAMESPACE, NAME, KEY = "gpu-operator", "berth-mig-config", "config.yaml"
AT_FIRST: Json = {
    "version": "v1",
    "mig-configs": {
        "all-disabled": [{"devices": "all", "mig-enabled": False}],
        "all-1g.10gb": [
            {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        ],
    },
}
TROUBLES = ("failed", "silent", "wrong")
"""What may go wrong with a cut: it fails, nothing more is said of it, or a slice is missing."""


class CannotCut(Exception):
    """The node can't be cut so."""


class MigManagers:
    """Those of all nodes. `delay_s` is how long, on the wall, each takes to begin and to cut."""

    def __init__(self, store: Store, binder: Binder, *, delay_s: float) -> None:
        self._store = store
        self._binder = binder
        self._delay_s = delay_s
        self._seen: dict[str, str] = {}
        self._troubles: dict[str, list[str]] = {}
        if store.find("configmaps", f"{NAMESPACE}/{NAME}") is None:
            store.put("configmaps", f"{NAMESPACE}/{NAME}", config_map())

    def trouble(self, node: str, how: str) -> None:
        """The node's next cut goes wrong so."""
        self._troubles.setdefault(node, []).append(how)

    def look(self, node: Json) -> None:
        """The node was patched: begin, if its label is another than before."""
        name, config = node["metadata"]["name"], node["metadata"]["labels"].get(CONFIG, "")
        before, self._seen[name] = self._seen.get(name, ""), config
        if config and config != before:
            self._later(self._begin, name, config)

    def _later(self, act: object, *arguments: str) -> None:
        asyncio.get_running_loop().call_later(self._delay_s, act, *arguments)  # type: ignore[arg-type]  # one of the two below

    def _begin(self, name: str, config: str) -> None:
        if self._tell(name, config, "pending"):
            self._later(self._cut, name, config)

    def _cut(self, name: str, config: str) -> None:
        trouble = (self._troubles.get(name) or [""]).pop(0)
        if trouble == "silent":
            return
        node = self._store.find("nodes", name)
        if node is None:
            return
        try:
            if trouble == "failed":
                cannot("it was told to fail")
            if self._held(name):
                cannot("a pod holds a device there")
            _cut(node, self._entry(config), one_less=trouble == "wrong")
        except CannotCut:
            self._tell(name, config, "failed")
        else:
            self._binder.set_node(node)
            self._tell(name, config, "success")

    def _tell(self, name: str, config: str, state: str) -> bool:
        """Unless the node is gone, or is to be cut otherwise by now."""
        node = self._store.find("nodes", name)
        if node is None or self._seen.get(name) != config:
            return False
        node["metadata"]["labels"][STATE] = state
        self._store.put("nodes", name, node)
        return True

    def _held(self, name: str) -> bool:
        return any(
            resource.startswith("nvidia.com/") and count
            for request in self._binder.held_on(name)
            for resource, count in request.items()
        )

    def _entry(self, config: str) -> list[Json]:
        found = self._store.find("configmaps", f"{NAMESPACE}/{NAME}") or {}
        try:
            known = yaml.safe_load(found["data"][KEY])["mig-configs"]
            entry: list[Json] = known[config]
        except (KeyError, TypeError, yaml.YAMLError):
            cannot(f"there is no way {config}")
        return entry


def config_map() -> Json:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": NAME, "labels": {}},
        "data": {KEY: yaml.safe_dump(AT_FIRST, sort_keys=False)},
    }


def cannot(why: str) -> NoReturn:
    raise CannotCut(why)


def _cut(node: Json, entry: list[Json], *, one_less: bool) -> None:
    """Make the node's labels and resources what they are once it is cut so."""
    labels: dict[str, str] = node["metadata"]["labels"]
    devices = int(labels["nvidia.com/gpu.count"])
    slices, whole = counted(entry, devices=devices)
    if one_less:
        slices -= Counter([min(slices)] if slices else [])
    for resource in [each for each in labels if each.startswith("nvidia.com/mig-")]:
        del labels[resource]
    product = labels["nvidia.com/gpu.product"]
    for profile, count in sorted(slices.items()):
        resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
        labels[f"{resource}.count"] = str(count)
        labels[f"{resource}.product"] = f"{product}-MIG-{profile.replace('+', '.')}"
    labels["nvidia.com/mig.strategy"] = "mixed"
    for resources in (node["status"]["capacity"], node["status"]["allocatable"]):
        offer(resources, slices=slices, whole=whole)


def counted(entry: list[Json], *, devices: int) -> tuple[Counter[str], int]:
    """How many slices of each profile, and how many whole devices, the way makes of so many.
    Raises CannotCut for devices that are not there."""
    slices: Counter[str] = Counter()
    cut: set[int] = set()
    for part in entry:
        which = range(devices) if part["devices"] == "all" else part["devices"]
        if not set(which) <= set(range(devices)):
            cannot("there are not so many devices")
        if part["mig-enabled"]:
            cut |= set(which)
            for profile, count in part.get("mig-devices", {}).items():
                slices[profile] += count * len(which)
    return slices, devices - len(cut)


def offer(resources: dict[str, str], *, slices: Mapping[str, int], whole: int) -> None:
    """What a kubelet says that it has; of what it had once, that there is none left."""
    for resource in resources:
        if resource.startswith("nvidia.com/mig-"):
            resources[resource] = "0"
    resources["nvidia.com/gpu"] = str(whole)
    for profile, count in slices.items():
        resources[f"nvidia.com/mig-{profile.replace('+', '.')}"] = str(count)
