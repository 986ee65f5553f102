"""Paths and verbs of the API: which request does what. Plain calls; nothing here waits."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import uuid4

import orjson

from clusters.simulator.answers import (
    Json,
    Refusal,
    already_exists,
    bad_request,
    check_preconditions,
    modified,
    not_found,
)
from clusters.simulator.cluster import Cluster, namespace, object_of
from clusters.simulator.inspected import INSPECTED
from clusters.simulator.lists import Lists
from clusters.simulator.moments import now, rfc3339
from clusters.simulator.pods import merged
from clusters.simulator.store import GROUPS, OWNERS, RESOURCES

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+berth.simulator",
    "platform": "linux/amd64",
}
MERGE_PATCH, APPLY_PATCH = "application/merge-patch+json", "application/apply-patch+yaml"
_PLAYED = {"nodepools", "nodeclaims", "provisioningrequests"}
"""Nobody here is their controller: whoever plays it says their status with the rest."""
_MERGED = {"configmaps", "resourcequotas", *_PLAYED}
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}
_CLUSTERED = {
    "nodes",
    "namespaces",
    "priorityclasses",
    "resourceslices",
    "deviceclasses",
    "nodepools",
    "nodeclaims",
}


class Target(NamedTuple):
    """What a path names. `name` is "" for a whole collection. Of a resource of an API group the
    name is jobs.batch and the like."""

    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def kind(self) -> str:
        """The resource with its group, as rights have it."""
        group = GROUPS.get(self.resource)
        return f"{self.resource}.{group}" if group else self.resource


def target(path: str) -> Target | None:
    """None for a path that is not simulated."""
    parts = path.strip("/").split("/")
    match parts:
        case ["api", "v1", *rest]:
            found = _target(rest)
        case ["apis", group, *_] if group:
            return _grouped(group, parts[2:])
        case _:
            return None
    return found if found and found.resource not in GROUPS else None


def _target(parts: list[str]) -> Target | None:
    match parts:
        case [resource, name] if resource in _CLUSTERED:
            return Target(resource, name=name)
        case [resource] if resource in RESOURCES:
            return Target(resource)
        case ["namespaces", space, "events"]:
            return Target("events", space)
        case ["namespaces", space, "pods", name, "log"]:
            return Target("pods/log", space, name)
        case ["namespaces", space, resource, *rest] if len(rest) < 2:
            if resource in RESOURCES and resource not in _CLUSTERED:
                return Target(resource, space, rest[0] if rest else "")
    return None


def _grouped(group: str, parts: list[str]) -> Target | None:
    """Of an API group, from its version on: a resource of ours, or some owner of pods."""
    match parts:
        case ["v1", *rest] if (found := _target(rest)) and GROUPS.get(found.resource) == group:
            return found
        case [_, "namespaces", space, resource, *rest] if len(rest) < 2:
            return Target(f"{resource}.{group}", space, rest[0] if rest else "")
    return None


def verb(method: str, what: Target, query: dict[str, str]) -> str:
    """As RBAC names it: get, list, watch, create, patch, delete."""
    if method != "GET":
        return _VERBS.get(method, method.lower())
    if query.get("watch") in ("1", "true"):
        return "watch"
    return "get" if what.name else "list"


class Api:
    """The verbs, on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.lists = Lists(cluster.store)
        self._cluster = cluster
        self._store = cluster.store
        self._verbs: dict[str, Callable[[Target, dict[str, str], Json, str], bytes]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "patch": self._patch,
            "update": self._update,
            "delete": self._delete,
        }
        self._of_owners: dict[str, Callable[[Target, dict[str, str], Json, str], bytes]] = {
            "get": self._get_owner,
            "create": self._create_owner,
            "delete": self._delete_owner,
        }

    def answer(
        self, verb: str, what: Target, query: dict[str, str], data: bytes, content_type: str
    ) -> bytes:
        """The object's JSON; a log as it is. Raises Refusal."""
        if INSPECTED.get(what.resource) == verb:
            inspected = self._cluster.inspected
            if what.resource == "events":
                return inspected.events(what.namespace, query)
            return inspected.log(what.namespace, what.name, query)
        act = (self._verbs if what.resource in RESOURCES else self._of_owners).get(verb)
        if act is None:
            raise Refusal(
                405, "MethodNotAllowed", "the server does not allow this method on the resource"
            )
        makes = verb == "create" or content_type == APPLY_PATCH
        if "dryRun" in query and (what.resource == "nodes" or not makes):
            bad_request("dry runs are simulated for creating and applying all but nodes")
        return act(what, query, object_of(data) if data else {}, content_type)

    def _get(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        entry = self._store.tables[what.resource].get(_key(what))
        if entry is None:
            not_found(what.resource, what.name)
        return entry.raw

    def _list(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        return self.lists.answer(what.resource, what.namespace, query)

    def _create(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        dry_run = _dry_run(query)
        if what.resource == "pods":
            return self._cluster.pods.create(what.namespace, body, dry_run=dry_run)
        name = (body.get("metadata") or {}).get("name")
        if not isinstance(name, str) or what.name:
            bad_request("name is required")
        what = what._replace(name=name)
        if self._store.find(what.resource, _key(what)) is not None:
            already_exists(what.resource, name)
        if what.resource == "nodes":
            return self._cluster.add_node(name, body)
        return self._put(what, body, dry_run=dry_run)

    def _patch(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        if content_type == APPLY_PATCH and what.resource != "pods" and what.name:
            if not query.get("fieldManager"):
                bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
            return self._put(what, body, dry_run=_dry_run(query))
        if content_type == MERGE_PATCH and what.resource == "nodes" and what.name:
            return self._cluster.patch_node(what.name, body)
        if content_type == MERGE_PATCH and what.resource in _MERGED and what.name:
            return self._merged(what, body)
        if content_type != MERGE_PATCH or what.resource != "pods" or not what.name:
            raise Refusal(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                f"{MERGE_PATCH}, {APPLY_PATCH}",
            )
        return self._cluster.pods.patch(what.namespace, what.name, body)

    def _update(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        """Another body for an object that no machine has a part in."""
        found = self._store.find(what.resource, _key(what))
        if found is None:
            not_found(what.resource, what.name)
        if what.resource in ("nodes", "pods"):
            raise Refusal(405, "MethodNotAllowed", "nodes and pods are not replaced here")
        known = body["metadata"].get("resourceVersion")
        if known not in {None, found["metadata"]["resourceVersion"]}:
            modified(what.resource, what.name)
        return self._store.put(what.resource, _key(what), body)

    def _delete(self, what: Target, query: dict[str, str], body: Json, content_type: str) -> bytes:
        if what.resource == "nodes" and what.name:
            return self._cluster.delete_node(what.name)
        if not what.name or what.resource == "namespaces":
            message = "only single objects that are no namespaces are deleted here"
            raise Refusal(405, "MethodNotAllowed", message)
        if what.resource != "pods":
            found = self._store.find(what.resource, _key(what))
            if found is None:
                not_found(what.resource, what.name)
            check_preconditions(what.resource, found["metadata"], body)
            return self._store.remove(what.resource, _key(what))
        options = dict(body)
        if "gracePeriodSeconds" in query:
            options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        return self._cluster.pods.delete(what.namespace, what.name, options)

    def _merged(self, what: Target, body: Json) -> bytes:
        found = self._store.find(what.resource, _key(what))
        if found is None:
            not_found(what.resource, what.name)
        check_preconditions(
            what.resource, found["metadata"], {"preconditions": body.get("metadata")}
        )
        return self._store.put(what.resource, _key(what), merged(found, body))

    def _get_owner(
        self, what: Target, query: dict[str, str], body: Json, content_type: str
    ) -> bytes:
        entry = self._store.tables[OWNERS].get(_owner_key(what))
        if entry is None:
            not_found(what.resource, what.name)
        return entry.raw

    def _create_owner(
        self, what: Target, query: dict[str, str], body: Json, content_type: str
    ) -> bytes:
        """No controller makes pods for it: whoever plays one names it as their owner."""
        name = (body.get("metadata") or {}).get("name")
        if not isinstance(name, str) or what.name:
            bad_request("name is required")
        what = what._replace(name=name)
        made = {"namespace": what.namespace, "uid": str(uuid4())}
        body["metadata"] |= made
        return self._store.put(OWNERS, _owner_key(what), body)

    def _delete_owner(
        self, what: Target, query: dict[str, str], body: Json, content_type: str
    ) -> bytes:
        if self._store.find(OWNERS, _owner_key(what)) is None:
            not_found(what.resource, what.name)
        return self._store.remove(OWNERS, _owner_key(what))

    def _put(self, what: Target, body: Json, *, dry_run: bool) -> bytes:
        """Server-side apply, without field managers: what is applied is set, the rest stays.

        Nothing is written when nothing would change.
        """
        if what.namespace and self._store.find("namespaces", what.namespace) is None:
            not_found("namespaces", what.namespace)
        found = self._store.find(what.resource, _key(what))
        if found is None:
            found = _fresh(what)
        before = orjson.dumps(found)
        if dry_run:
            found = orjson.loads(before)
        metadata = body.get("metadata") or {}
        for field in ("labels", "annotations"):
            if field in metadata:
                found["metadata"][field] = {
                    **(found["metadata"].get(field) or {}),
                    **metadata[field],
                }
        if "ownerReferences" in metadata:
            found["metadata"]["ownerReferences"] = metadata["ownerReferences"]
        fixed = {"kind", "apiVersion", "metadata"}
        for field in body.keys() - (fixed if what.resource in _PLAYED else fixed | {"status"}):
            asked = body[field]
            there = found.get(field) or {}
            found[field] = {**there, **asked} if isinstance(asked, dict) else asked
        if dry_run:
            return orjson.dumps(found)
        entry = self._store.tables[what.resource].get(_key(what))
        if entry is not None and orjson.dumps(found) == before:
            return entry.raw
        return self._store.put(what.resource, _key(what), found)


def _owner_key(what: Target) -> str:
    return f"{what.resource}/{what.namespace}/{what.name}"


def _key(what: Target) -> str:
    return f"{what.namespace}/{what.name}" if what.namespace else what.name


def _dry_run(query: dict[str, str]) -> bool:
    if query.get("dryRun", "All") != "All":
        bad_request(f'Invalid value: "{query["dryRun"]}": dryRun has to be All')
    return "dryRun" in query


def _fresh(what: Target) -> Json:
    if what.resource == "namespaces":
        return namespace(what.name)
    group = GROUPS.get(what.resource)
    return {
        "kind": RESOURCES[what.resource],
        "apiVersion": f"{group}/v1" if group else "v1",
        "metadata": {
            "name": what.name,
            "namespace": what.namespace,
            "uid": f"{what.resource}-{what.namespace}-{what.name}",
            "creationTimestamp": rfc3339(now()),
        },
    }
