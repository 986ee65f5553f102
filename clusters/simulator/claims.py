"""Dynamic Resource Allocation as the scheduler does it: which devices a pod's claims are given.

Of the expressions of selectors it knows those that Berth writes: equal attributes and named
capacities, joined by `&&`, and a driver that is one of several. Others select nothing. A pool is
whole when as many slices of its newest generation are there as they say.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from clusters.simulator.answers import Json
from clusters.simulator.quantities import amount
from clusters.simulator.store import Store

_EQUAL = re.compile(r"device\.attributes\['([^']+)'\]\.(\w+) == '([^']*)'")
_HAS = re.compile(r"(!\()?'(\w+)' in device\.capacity\['([^']+)'\]\)?")
_DRIVER = re.compile(r"device\.driver (?:== |in \[)('[^']+'(?:, '[^']+')*)\]?")


class _Published(NamedTuple):
    driver: str
    pool: str
    body: Json

    @property
    def id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.body["name"]


class Claims:
    """The claims of one cluster's pods."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def refusal(self, pod: Json, node: str) -> str | None:
        """Why the pod's claims can't be allocated there; None when they can, or it has none."""
        for name in _names(pod):
            if self._claim(pod, name) is None:
                return f'resourceclaim "{name}" not found'
        return None if self._given(pod, node) is not None else "cannot allocate all claims"

    def allocate(self, pod: Json, node: str) -> None:
        """Write down what they are given; the caller has asked for a refusal."""
        given = self._given(pod, node) or {}
        for name, results in given.items():
            claim = self._claim(pod, name)
            if claim is not None:
                reserved = {"resource": "pods", "name": pod["metadata"]["name"]}
                claim["status"] = {
                    "allocation": {"devices": {"results": results}},
                    "reservedFor": [{**reserved, "uid": pod["metadata"]["uid"]}],
                }
                self._store.put("resourceclaims", _key(pod, name), claim)

    def ended(self, pod: Json) -> None:
        """The pod has ended or is gone: what it was given is free."""
        for name in _names(pod):
            claim = self._claim(pod, name)
            if claim is not None and "status" in claim:
                del claim["status"]
                self._store.put("resourceclaims", _key(pod, name), claim)

    def removed(self, pod: Json) -> None:
        """The pod is gone, and so is what it owns."""
        self.ended(pod)
        uid = pod["metadata"]["uid"]
        for key, entry in list(self._store.tables["resourceclaims"].items()):
            owners = entry.body["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == uid for owner in owners):
                self._store.remove("resourceclaims", key)

    def _given(self, pod: Json, node: str) -> dict[str, list[Json]] | None:
        """By claim, what it gets; None when one can't have all it asks for."""
        published = list(self._published(node))
        taken = set(self._taken())
        given: dict[str, list[Json]] = {}
        for name in _names(pod):
            claim = self._claim(pod, name) or {"spec": {"devices": {}}}
            results = given.setdefault(name, [])
            for request in claim["spec"]["devices"].get("requests", ()):
                found = next(
                    (
                        device
                        for device in published
                        if device.id not in taken
                        and self._selects(request, device)
                        and self._has_room(node, device, taken)
                    ),
                    None,
                )
                if found is None:
                    return None
                taken.add(found.id)
                where = {"driver": found.driver, "pool": found.pool}
                results.append({"request": request["name"], **where, "device": found.body["name"]})
        return given

    def _selects(self, request: Json, device: _Published) -> bool:
        asked = request["exactly"]
        of_class = self._store.find("deviceclasses", asked["deviceClassName"])
        if of_class is None:
            return False
        selectors = [*(of_class["spec"].get("selectors") or ()), *(asked.get("selectors") or ())]
        terms = [term for each in selectors for term in each["cel"]["expression"].split(" && ")]
        return all(_holds(term, device) for term in terms)

    def _has_room(self, node: str, device: _Published, taken: set[tuple[str, str, str]]) -> bool:
        limits: Counter[tuple[str, str]] = Counter()
        for part in self._slices(node):
            limits.update(_counted(part["spec"].get("sharedCounters"), "name"))
        used = Counter(_counted(device.body.get("consumesCounters"), "counterSet"))
        for other in self._published(node):
            if other.id in taken and other.id != device.id:
                used.update(_counted(other.body.get("consumesCounters"), "counterSet"))
        own = _counted(device.body.get("consumesCounters"), "counterSet")
        return all(used[key] <= limits[key] for key in own)

    def _taken(self) -> Iterator[tuple[str, str, str]]:
        for claim in self._store.bodies("resourceclaims"):
            allocation = (claim.get("status") or {}).get("allocation") or {"devices": {}}
            for each in allocation["devices"].get("results", ()):
                yield each["driver"], each["pool"], each["device"]

    def _published(self, node: str) -> Iterator[_Published]:
        for part in self._slices(node):
            spec = part["spec"]
            for body in spec.get("devices") or ():
                if not body.get("taints"):
                    yield _Published(spec["driver"], spec["pool"]["name"], body)

    def _slices(self, node: str) -> Iterator[Json]:
        parts = [
            part
            for part in self._store.bodies("resourceslices")
            if part["spec"].get("nodeName") == node
        ]
        for part in parts:
            pool = part["spec"]["pool"]
            of_pool = [
                each["spec"]["pool"]
                for each in parts
                if each["spec"]["pool"]["name"] == pool["name"]
            ]
            newest = max(each["generation"] for each in of_pool)
            there = sum(1 for each in of_pool if each["generation"] == newest)
            if pool["generation"] == newest and there == pool["resourceSliceCount"]:
                yield part

    def _claim(self, pod: Json, name: str) -> Json | None:
        return self._store.find("resourceclaims", _key(pod, name))


def _names(pod: Json) -> list[str]:
    return [each["resourceClaimName"] for each in pod["spec"].get("resourceClaims") or ()]


def _key(pod: Json, name: str) -> str:
    return f"{pod['metadata']['namespace']}/{name}"


def _counted(sets: list[Json] | None, key: str) -> dict[tuple[str, str], int]:
    return {
        (each[key], name): amount(name, counter["value"])
        for each in sets or ()
        for name, counter in each["counters"].items()
    }


def _holds(term: str, device: _Published) -> bool:
    if match := _DRIVER.fullmatch(term):
        return f"'{device.driver}'" in match[1].split(", ")
    if match := _EQUAL.fullmatch(term):
        told = device.body.get("attributes", {}).get(match[2], {})
        return match[1] == device.driver and told.get("string") == match[3]
    if match := _HAS.fullmatch(term):
        has = match[3] == device.driver and match[2] in device.body.get("capacity", {})
        return has != bool(match[1])
    return False
