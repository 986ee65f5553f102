"""A MIG manager for the fake nodes of the control plane: it cuts them by their labels, as the
simulator's does, through the API alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from clusters.simulator.mig_manager import (
    AT_FIRST,
    CONFIG,
    KEY,
    NAME,
    NAMESPACE,
    STATE,
    CannotCut,
    counted,
    offer,
)
from tests.kube.api import MERGE_PATCH, Api

CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
LOOKS_EACH_S = 0.1


@dataclass
class Manager:
    _failing: set[str] = field(default_factory=set)

    def fails(self, node: str) -> None:
        """The node's next cut, half-way: it has no device then."""
        self._failing.add(node)

    def trouble(self, node: str) -> bool:
        if node not in self._failing:
            return False
        self._failing.remove(node)
        return True


@contextmanager
def mig_manager(admin: Api) -> Iterator[Manager]:
    """With the config map as an operator makes it."""
    make_config_map(admin)
    stop = threading.Event()
    manager = Manager()
    thread = threading.Thread(target=_manage, args=[admin, manager, stop], daemon=True)
    thread.start()
    try:
        yield manager
    finally:
        stop.set()
        thread.join(timeout=10)
        assert not thread.is_alive()


def make_config_map(admin: Api) -> None:
    """As an operator does, unless it is there, and its namespace."""
    if admin.call("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404:
        admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    if admin.call("GET", CONFIG_MAP).status == 404:
        body = {"metadata": {"name": NAME}, "data": {KEY: yaml.safe_dump(AT_FIRST)}}
        admin.create(CONFIG_MAP.rpartition("/")[0], body)


def _manage(admin: Api, manager: Manager, stop: threading.Event) -> None:
    seen: dict[str, str] = {}
    while not stop.wait(LOOKS_EACH_S):
        for node in admin.get("/api/v1/nodes")["items"]:
            name, config = node["metadata"]["name"], node["metadata"]["labels"].get(CONFIG, "")
            if config and config != seen.get(name):
                _tell(admin, name, {STATE: "pending"})
                _cut(admin, node, config, fails=manager.trouble(name))
            seen[name] = config


def _cut(admin: Api, node: Any, config: str, *, fails: bool) -> None:  # Any: JSON
    name, labels = node["metadata"]["name"], node["metadata"]["labels"]
    known = yaml.safe_load(admin.get(CONFIG_MAP)["data"][KEY])["mig-configs"]
    try:
        if config not in known or _held(admin, name):
            raise CannotCut
        slices, whole = counted(known[config], devices=int(labels["nvidia.com/gpu.count"]))
    except CannotCut:
        _tell(admin, name, {STATE: "failed"})
        return
    status = {key: dict(node["status"][key]) for key in ("capacity", "allocatable")}
    for resources in status.values():
        offer(resources, slices={} if fails else slices, whole=0 if fails else whole)
    admin.do("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=MERGE_PATCH)
    _tell(admin, name, {STATE: "failed" if fails else "success"})


def _held(admin: Api, node: str) -> bool:
    pods = admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]
    return any(
        resource.startswith("nvidia.com/")
        for pod in pods
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
        for container in pod["spec"]["containers"]
        for resource in (container["resources"].get("requests") or {})
    )


def _tell(admin: Api, name: str, labels: dict[str, str]) -> None:
    body = {"metadata": {"labels": labels}}
    admin.do("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE_PATCH)
