"""Pods as the API server treats them: created, patched and deleted, or refused in its words."""

import asyncio
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import orjson

from clusters.simulator import moments
from clusters.simulator.answers import (
    Json,
    already_exists,
    bad_request,
    check_preconditions,
    invalid,
    modified,
    not_found,
)
from clusters.simulator.binder import Binder
from clusters.simulator.claims import Claims
from clusters.simulator.kubelets import Kubelets
from clusters.simulator.quantities import amount
from clusters.simulator.store import Store

GRACE_S = 30
_DNS_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_IMMUTABLE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


class Pods:
    """The write side of pods: store, scheduler and kubelets hear of each change here."""

    def __init__(self, store: Store, binder: Binder, kubelets: Kubelets) -> None:
        self._store = store
        self._binder = binder
        self._kubelets = kubelets
        self._claims = Claims(store)

    def create(self, namespace: str, body: Json, *, dry_run: bool = False) -> bytes:
        metadata = body.get("metadata")
        if body.get("kind") != "Pod" or not isinstance(metadata, dict):
            bad_request("the object provided is no Pod")
        name = metadata.get("name")
        if metadata.get("namespace", namespace) != namespace:
            bad_request("the namespace of the object does not match the namespace on the request")
        if self._store.find("namespaces", namespace) is None:
            not_found("namespaces", namespace)
        _validate(name, body.get("spec"))
        key = f"{namespace}/{name}"
        if self._store.find("pods", key) is not None:
            already_exists("pods", str(name))
        pod = _born(namespace, body)
        if dry_run:
            return orjson.dumps(pod)
        raw = self._store.put("pods", key, pod)
        self._let_on(key, pod)
        return raw

    def patch(self, namespace: str, name: str, patch: Json) -> bytes:
        key = f"{namespace}/{name}"
        pod = self._store.find("pods", key)
        if pod is None:
            not_found("pods", name)
        asked = patch.get("metadata") or {}
        metadata = pod["metadata"]
        if (
            asked.get("resourceVersion", metadata["resourceVersion"])
            != metadata["resourceVersion"]
        ):
            modified("pods", name)
        if asked.get("uid", metadata["uid"]) != metadata["uid"]:
            invalid(
                "Pod", name, "metadata.uid", f'Invalid value: "{asked["uid"]}": field is immutable'
            )
        spec = merged(pod["spec"], patch.get("spec") or {})
        _check_update(name, pod["spec"], spec)
        for field in ("labels", "annotations"):
            if field in asked:
                metadata[field] = merged(metadata.get(field) or {}, asked[field] or {})
        was_gated = bool(pod["spec"].get("schedulingGates"))
        pod["spec"] = spec
        if was_gated and not spec.get("schedulingGates"):
            spec.pop("schedulingGates", None)
            pod["status"]["conditions"] = []
        raw = self._store.put("pods", key, pod)
        if was_gated:
            self._let_on(key, pod)
        return raw

    def delete(self, namespace: str, name: str, options: Json) -> bytes:
        """The pod as it is after that: on its way, or (its last state) gone."""
        key = f"{namespace}/{name}"
        pod = self._store.find("pods", key)
        if pod is None:
            not_found("pods", name)
        metadata = pod["metadata"]
        check_preconditions("pods", metadata, options)
        grace_s = options.get("gracePeriodSeconds")
        if grace_s is None:
            grace_s = pod["spec"].get("terminationGracePeriodSeconds", GRACE_S)
        if grace_s < 0:
            invalid("DeleteOptions", name, "gracePeriodSeconds", "Invalid value: -1")
        ended = pod["status"]["phase"] in ("Succeeded", "Failed")
        if grace_s == 0 or ended or "nodeName" not in pod["spec"]:
            return self.remove(key)
        if metadata.get("deletionGracePeriodSeconds", grace_s + 1) > grace_s:
            at = moments.now() + timedelta(seconds=grace_s)
            metadata["deletionTimestamp"] = moments.rfc3339(at)
            metadata["deletionGracePeriodSeconds"] = grace_s
            self._store.put("pods", key, pod)
            self._kubelets.stop(key, grace_s)
        return self._store.tables["pods"][key].raw

    def remove(self, key: str) -> bytes:
        """Take a pod out of the API at once, and its room out of use; its last state."""
        self._kubelets.forget(key)
        pod = self._store.find("pods", key)
        raw = self._store.remove("pods", key)
        if pod is not None:
            self._claims.removed(pod)
        self._binder.release(key)
        return raw

    def _let_on(self, key: str, pod: Json) -> None:
        """Hand an open pod to the scheduler, or to the kubelet that it names itself."""
        if pod["spec"].get("schedulingGates") or "deletionTimestamp" in pod["metadata"]:
            return
        if "nodeName" in pod["spec"]:
            self._binder.hold(key, pod)
            self._kubelets.begin(key)
        else:
            asyncio.get_running_loop().call_soon(self._schedule, key)

    def _schedule(self, key: str) -> None:
        pod = self._store.find("pods", key)
        if pod is not None and "nodeName" not in pod["spec"]:
            self._binder.add(key, pod)


def _born(namespace: str, body: Json) -> Json:
    at = moments.rfc3339(moments.now())
    metadata, spec = body["metadata"], body["spec"]
    told = ("name", "labels", "annotations", "ownerReferences")
    kept = {key: metadata[key] for key in told if key in metadata}
    status: Json = {"phase": "Pending", "qosClass": "Guaranteed"}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": at,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            **kept,
            "namespace": namespace,
            "uid": str(uuid4()),
            "creationTimestamp": at,
        },
        "spec": {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": GRACE_S,
            "schedulerName": "default-scheduler",
            **spec,
        },
        "status": status,
    }


def _validate(name: object, spec: object) -> None:
    """Refuse what a real server would, as far as Berth could send it. Raises Refusal."""
    if not isinstance(name, str) or not _DNS_NAME.fullmatch(name):
        invalid(
            "Pod",
            str(name)[:80],
            "metadata.name",
            f'Invalid value: "{str(name)[:80]}": a lowercase RFC 1123 subdomain must consist of '
            "lower case alphanumeric characters, '-' or '.', and must start and end with an "
            "alphanumeric character",
        )
    if not isinstance(spec, dict) or not spec.get("containers"):
        invalid("Pod", name, "spec.containers", "Required value")
    if spec.get("restartPolicy", "Always") not in ("Always", "OnFailure", "Never"):
        problem = f'Unsupported value: "{spec["restartPolicy"]}"'
        invalid("Pod", name, "spec.restartPolicy", problem)
    limit_s = spec.get("activeDeadlineSeconds")
    if limit_s is not None and not (isinstance(limit_s, int) and 1 <= limit_s < 2**31):
        problem = f"Invalid value: {limit_s}: must be between 1 and 2147483647, inclusive"
        invalid("Pod", name, "spec.activeDeadlineSeconds", problem)
    if spec.get("schedulingGates") and "nodeName" in spec:
        problem = "Forbidden: cannot be set until all schedulingGates have been cleared"
        invalid("Pod", name, "spec.nodeName", problem)
    for index, container in enumerate(spec["containers"]):
        _validate_container(name, f"spec.containers[{index}]", container)


def _validate_container(name: str, field: str, container: Any) -> None:  # Any: JSON
    if not isinstance(container, dict) or not container.get("name"):
        invalid("Pod", name, f"{field}.name", "Required value")
    if not container.get("image"):
        invalid("Pod", name, f"{field}.image", "Required value")
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    for resource, text in requests.items():
        at = f"{field}.resources.requests[{resource}]"
        try:
            wanted = amount(resource, text)
            most = amount(resource, limits[resource]) if resource in limits else wanted
        except (ValueError, TypeError) as error:
            invalid("Pod", name, at, f'Invalid value: "{text}": {error}')
        if wanted > most:
            problem = f'Invalid value: "{text}": must be less than or equal to {resource} limit'
            invalid("Pod", name, at, f"{problem} of {limits[resource]}")
        if "/" in resource and (resource not in limits or wanted != most):
            problem = f'Invalid value: "{text}": must be equal to {resource} limit'
            invalid("Pod", name, at, problem)


def merged(old: Json, patch: Json) -> Json:
    """RFC 7396: a JSON merge patch."""
    fresh = dict(old)
    for key, value in patch.items():
        if value is None:
            fresh.pop(key, None)
        elif isinstance(value, dict):
            found = fresh.get(key)
            fresh[key] = merged(found if isinstance(found, dict) else {}, value)
        else:
            fresh[key] = value
    return fresh


def _check_update(name: str, old: Json, new: Json) -> None:
    """Of a pod's spec only the gates may go, and while there are some the selector may narrow."""
    old_gates = [gate["name"] for gate in old.get("schedulingGates") or ()]
    for gate in new.get("schedulingGates") or ():
        if gate["name"] not in old_gates:
            problem = (
                "Forbidden: only deletion is allowed, but found new scheduling gate "
                f"'{gate['name']}'"
            )
            invalid("Pod", name, "spec.schedulingGates", problem)
    fixed = old_gates == []
    before, after = old.get("nodeSelector") or {}, new.get("nodeSelector") or {}
    if before != after and not fixed and not before.items() <= after.items():
        problem = "Invalid value: only additions are allowed (no mutations or deletions)"
        invalid("Pod", name, "spec.nodeSelector", problem)
    free = {"schedulingGates", "activeDeadlineSeconds", "tolerations"}
    free |= set() if fixed else {"nodeSelector"}
    if any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()) - free):
        invalid("Pod", name, "spec", _IMMUTABLE)
