"""Pure: the webhook that has pods of others wait for Berth where Kubernetes is too old for
policies that change pods.

The API server asks Berth's own web server, which changes a pod exactly as the mutating policy of
`catching` would. It decides nothing: the validating policy there holds that the change was made,
so an answer that is late or left out lets nothing pass. What that policy does not hold, such as
an image, whoever answers in Berth's place could change, and sees the pod whole. The answer is a
function of what is asked alone, so it tells nobody anything, and asks for no credential.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from clusters.adapters.kubernetes.names import DEVICES, VISIBLE, Names

type Json = dict[str, Any]  # Any: an object of the API, as JSON

PATH = "/admission/pods"
WITHIN_S = 5
"""Then the API server gives up, and refuses the pod: who made it tries again."""
MOST = 300
"""Containers of a pod; with more its answer would be many times what was asked."""
_ADMISSION = "admission.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a cluster reaches Berth: `url` without a path; `ca_pem` is the authority of its
    certificate, "" for those that the API server trusts by itself."""

    url: str
    ca_pem: str = ""


class NotAReview(ValueError):
    """What was asked is no review of a pod that is being made."""


def configuration(*, hook: Hook, name: str, conditions: Sequence[Json], selector: Json) -> Json:
    """What has the API server ask, of pods made in those namespaces under those conditions."""
    client: Json = {"url": hook.url + PATH}
    if hook.ca_pem:
        client["caBundle"] = base64.b64encode(hook.ca_pem.encode()).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "berth"}},
        "webhooks": [
            {
                "name": f"{name}.berth.dev",
                "clientConfig": client,
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "namespaceSelector": selector,
                "matchConditions": list(conditions),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "IfNeeded",
                "timeoutSeconds": WITHIN_S,
            }
        ],
    }


def answer(asked: bytes, *, names: Names) -> Json:
    """The AdmissionReview that answers one: the pod is allowed, with what is to change of it.

    Raises NotAReview.
    """
    try:
        request = orjson.loads(asked)["request"]
        uid, pod, maker = request["uid"], request["object"], request["userInfo"]["username"]
        if request["kind"]["kind"] != "Pod" or not isinstance(uid, str):
            raise NotAReview("It is about no pod.")
        if not isinstance(maker, str) or not maker:
            raise NotAReview("It says of nobody who made the pod.")
        patch = list(_changes(pod, maker=maker, names=names))
    except (KeyError, TypeError, AttributeError, orjson.JSONDecodeError) as error:
        raise NotAReview("It is no AdmissionReview of a pod that is being made.") from error
    response: Json = {"uid": uid, "allowed": True}
    if patch:
        written = base64.b64encode(orjson.dumps(patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": written}
    return {"apiVersion": _ADMISSION, "kind": "AdmissionReview", "response": response}


def _changes(pod: Json, *, maker: str, names: Names) -> Iterator[Json]:
    metadata, spec = pod["metadata"], pod["spec"]
    lists = {field: spec.get(field) or [] for field in ("containers", "initContainers")}
    if sum(map(len, lists.values())) > MOST:
        raise NotAReview(f"It is of a pod with more than {MOST} containers.")
    asks = any(_asks(one) for containers in lists.values() for one in containers)
    claims = bool(spec.get("resourceClaims"))
    if asks or claims or names.label_queue in (metadata.get("labels") or {}):
        yield from _put(metadata, "labels", names.label_caught, names.installation)
        yield from _put(metadata, "annotations", names.annotation_creator, maker)
        gates = spec.get("schedulingGates") or []
        if all(gate["name"] != names.gate for gate in gates):
            yield _added("/spec/schedulingGates", {"name": names.gate}, to=gates)
    for field, containers in lists.items():
        for nth, one in enumerate(containers):
            env = one.get("env") or []
            if not _asks(one) and all(each["name"] != VISIBLE for each in env):
                void = {"name": VISIBLE, "value": "void"}
                yield _added(f"/spec/{field}/{nth}/env", void, to=env)


def _asks(container: Json) -> bool:
    """Whether it asks for a device."""
    asked = container.get("resources") or {}
    return any(
        resource.startswith(DEVICES)
        for kind in ("limits", "requests")
        for resource in asked.get(kind) or {}
    )


def _put(metadata: Mapping[str, Json | None], field: str, key: str, value: str) -> Iterator[Json]:
    there = metadata.get(field)
    if not there:
        yield {"op": "add", "path": f"/metadata/{field}", "value": {key: value}}
    elif there.get(key) != value:
        escaped = key.replace("~", "~0").replace("/", "~1")
        yield {"op": "add", "path": f"/metadata/{field}/{escaped}", "value": value}


def _added(path: str, item: Json, *, to: Sequence[Json]) -> Json:
    """One more in a list, which may not be there yet."""
    if not to:
        return {"op": "add", "path": path, "value": [item]}
    return {"op": "add", "path": f"{path}/-", "value": item}
