"""Pure: a PodRequest as the pod that is sent, and the objects around it. No I/O.

Pods satisfy the `restricted` Pod Security Standard, which their namespace enforces. It demands
runAsNonRoot; most GPU images are built to run as root, and such a pod would then not start at all,
so the user and group are set too. An image that needs root does not run under Berth.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from clusters.adapters.kubernetes.names import GPU, HOSTNAME, QUEUED, Names
from clusters.port import PodRequest

type Json = dict[str, Any]  # Any: an object of the API, as JSON

CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
REQUEST_CLASS = "autoscaling.x-k8s.io/provisioning-class-name"
"""Annotations of pods that run on nodes that were asked for at once: either is nothing alone."""
RUN_AS = 1000
NOTICE_AT = "/etc/berth"
"""Where a pod reads, in notice-until, when it will be stopped: empty until it is told."""
POD_SECURITY: Json = {
    "runAsNonRoot": True,
    "runAsUser": RUN_AS,
    "runAsGroup": RUN_AS,
    "fsGroup": RUN_AS,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
_VOLUME = "berth"
_DEVICES = "nvidia.com/"
_CLAIM = "devices"


def pod(request: PodRequest, *, names: Names) -> Json:
    """The pod, born with the gate, that carries the hash of everything asked of it."""
    labels = pod_labels(
        workload=request.workload, attempt=request.attempt, rank=request.rank, names=names
    )
    spec = _spec(request, names=names)
    digest = hashlib.sha256(orjson.dumps([labels, spec], option=orjson.OPT_SORT_KEYS))
    annotations = {names.annotation_hash: digest.hexdigest()}
    if request.consumes:
        annotations[CONSUMES] = request.consumes.name
        annotations[REQUEST_CLASS] = request.consumes.request_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def pod_labels(*, workload: str, attempt: int, rank: int, names: Names) -> Json:
    """What says whose a pod is."""
    return {
        names.label_installation: names.installation,
        names.label_workload: workload,
        names.label_attempt: str(attempt),
        names.label_rank: str(rank),
    }


def adoption(*, uid: str, resource_version: str, labels: Json) -> Json:
    """The merge patch that gives a pod these labels, if it is still that pod at that version."""
    return {"metadata": {"uid": uid, "resourceVersion": resource_version, "labels": labels}}


def _spec(request: PodRequest, *, names: Names) -> Json:
    spec: Json = {
        "schedulingGates": [{"name": names.gate}],
        "restartPolicy": "Never",
        "priorityClassName": names.priority_class(request.priority),
        "serviceAccountName": names.workload_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": request.grace_s,
        "securityContext": POD_SECURITY,
        "tolerations": tolerations(request.tolerates),
        "containers": [_container(request)],
    }
    if request.pins:
        spec["resourceClaims"] = [{"name": _CLAIM, "resourceClaimName": request.name}]
    if request.run_time_limit_s is not None:
        spec["activeDeadlineSeconds"] = request.run_time_limit_s
    if request.notice:
        told = {"fieldRef": {"fieldPath": f"metadata.annotations['{names.annotation_notice}']"}}
        items = [{"path": "notice-until", **told}]
        spec["volumes"] = [{"name": _VOLUME, "downwardAPI": {"items": items}}]
    if request.subdomain:
        spec["hostname"] = request.name
        spec["subdomain"] = request.subdomain
    return spec


def tolerations(key: str) -> list[Json]:
    """Of the usual taints that keep other work off GPU nodes, and of that one: what goes where is
    Berth's decision."""
    return [
        {"key": one, "operator": "Exists", "effect": "NoSchedule"}
        for one in dict.fromkeys((GPU, key, QUEUED))
    ]


def _container(request: PodRequest) -> Json:
    resources: Json = {
        "cpu": f"{request.cpu_milli}m",
        "memory": f"{request.memory_mib}Mi",
        **{name: str(count) for name, count in request.resources},
    }
    env: list[Json] = [{"name": name, "value": value} for name, value in request.env]
    if not _has_devices(request):
        # An image may say NVIDIA_VISIBLE_DEVICES=all; without a device it must see none (T7).
        env = [item for item in env if item["name"] != "NVIDIA_VISIBLE_DEVICES"]
        env.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    container: Json = {
        "name": "main",
        "image": request.image,
        "env": env,
        "resources": {"requests": resources, "limits": resources},
        "securityContext": CONTAINER_SECURITY,
    }
    if request.pins:
        container["resources"]["claims"] = [{"name": _CLAIM}]
    if request.notice:
        mount = {"name": _VOLUME, "mountPath": NOTICE_AT, "readOnly": True}
        container["volumeMounts"] = [mount]
    if request.command:
        container["command"] = list(request.command)
    if request.args:
        container["args"] = list(request.args)
    return container


def _has_devices(request: PodRequest) -> bool:
    plugged = any(name.startswith(_DEVICES) and count for name, count in request.resources)
    return plugged or bool(request.pins)


def given(*, uid: str, resource_version: str, claims: Mapping[str, str]) -> Json:
    """The patch by which a pod's claims are those, if it is still that pod at that version: by its
    own word for each, what it is called."""
    told = [{"name": name, "resourceClaimName": of} for name, of in claims.items()]
    return {
        "metadata": {"uid": uid, "resourceVersion": resource_version},
        "status": {"resourceClaimStatuses": told},
    }


def opening(*, uid: str, resource_version: str, hostname: str) -> Json:
    """The merge patch that pins a pod to a node and takes its gates away, if it is still that pod
    at that version."""
    return {
        "metadata": {"uid": uid, "resourceVersion": resource_version},
        "spec": {"nodeSelector": {HOSTNAME: hostname}, "schedulingGates": None},
    }


def notice(*, uid: str, until: datetime, names: Names) -> Json:
    """The merge patch that tells a pod until when it may run, if it is still that pod."""
    told = until.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"metadata": {"uid": uid, "annotations": {names.annotation_notice: told}}}


def namespace(name: str, *, names: Names) -> Json:
    """A project's namespace, which admits only what `pod` makes: nothing privileged."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                names.label_installation: names.installation,
                "pod-security.kubernetes.io/enforce": "restricted",
                # Said, so that it is ours: an older one would let in what is refused by now.
                "pod-security.kubernetes.io/enforce-version": "latest",
                # Pods are refused; whoever makes a Deployment of such ones is told at once.
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    }


def service_labels(*, workload: str, attempt: int, names: Names) -> Json:
    """What says whose a service is, and selects its pods."""
    return {
        names.label_installation: names.installation,
        names.label_workload: workload,
        names.label_attempt: str(attempt),
    }


def service(*, namespace: str, name: str, workload: str, attempt: int, names: Names) -> Json:
    """A headless service: it gives each rank its name before any is ready."""
    selector = service_labels(workload=workload, attempt=attempt, names=names)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(selector)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector,
        },
    }
