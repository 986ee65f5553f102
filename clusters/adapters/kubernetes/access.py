"""Pure: what an administrator applies so that Berth may work in a cluster, and no more than that.

A service account, or a user whom the cluster knows already, with the rights of `rights`, and a
policy of admission: in namespaces of this installation, pods with its labels are made by that one
alone, and their spec, gate and image included, is changed by that one alone; so are pods of its
priorities, which its quota counts. Pods without them are
others' business: an adopted namespace may have controllers that make pods. Nothing else of a pod
that is there already is held up: kubelets, the scheduler and the garbage collector change its
status, its binding and its finalizers, never those labels nor its spec.
"""

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

import yaml

from clusters.adapters.kubernetes import catching, confinement, manifests, placeholders
from clusters.adapters.kubernetes.device_claims import OURS, device_class
from clusters.adapters.kubernetes.hook import Hook
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import (
    AUTOSCALE_RIGHTS,
    DEVICES,
    LOG_RIGHTS,
    MIG_RIGHTS,
    OF_PARTS,
    REQUEST_RIGHTS,
    RIGHTS,
    Right,
)
from clusters.parts import Part
from clusters.port import PRIORITIES

type Json = dict[str, Any]  # Any: an object of the API, as JSON

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_LABELS = {"app.kubernetes.io/name": "berth"}


def text(
    *,
    names: Names,
    user: str | None,
    token_h: int,
    parts: Collection[Part] = (),
    hook: Hook | None = None,
) -> str:
    """The manifest as YAML, with what each right is for, those of the `parts` too.

    It is for that user, or else for a service account of its own, with how to get a token of it
    that is good for so many hours. With Part.CATCH, what others make there waits for Berth
    (`catching`), through `hook` where there is one.
    """
    granted = [*RIGHTS, *(right for part in Part if part in parts for right in OF_PARTS[part])]
    rights = "".join(f"#   {right}: {right.why}\n" for right in granted)
    return (
        f"# What Berth's installation {names.installation} may do in this cluster, and no more:\n"
        f"{rights}"
        f"{_next(names=names, user=user, token_h=token_h)}"
        "# Two powers are wide by nature: who may create pods in a namespace may mount what is\n"
        "# in it, and workloads live in many namespaces. Keep the credential as a cluster's key.\n"
    ) + yaml.safe_dump_all(
        documents(names=names, user=user, parts=parts, hook=hook),
        sort_keys=False,
    )


def documents(
    *,
    names: Names,
    user: str | None = None,
    parts: Collection[Part] = (),
    hook: Hook | None = None,
) -> list[Json]:
    """The objects, in the order in which they can be applied."""
    name, home, policy = names.own, names.home, f"{names.own}-pods"
    berth = user or f"system:serviceaccount:{home}:{name}"
    account: Json = {"kind": "ServiceAccount", "name": name, "namespace": home}
    subject: Json = {"apiGroup": _RBAC, "kind": "User", "name": user} if user else account
    return [
        _home(names=names),
        confinement.account(home, names=names),
        *confinement.priority_classes(names=names),
        *([] if user else [_account(name, home)]),
        *_granted("ClusterRole", _metadata(name), _rules(RIGHTS), to=subject),
        *_enforced(policy, _policy(user=berth, names=names), names=names),
        *(_to_cut_nodes(subject, names=names) if Part.MIG in parts else ()),
        *(_to_claim_devices(subject, user=berth, names=names) if Part.DRA in parts else ()),
        *(catching.documents(names=names, user=berth, hook=hook) if Part.CATCH in parts else ()),
        *(_to_autoscale(subject, names=names) if Part.AUTOSCALE in parts else ()),
        *(_to_show_logs(subject, names=names) if Part.LOGS in parts else ()),
    ]


def _rules(rights: Iterable[Right], **only: list[str]) -> list[Json]:
    return [
        {
            "apiGroups": [group],
            "resources": [resource],
            **only,
            "verbs": [right.verb for right in alike],
        }
        for (group, resource), alike in groupby(
            rights, key=lambda right: (right.group, right.resource)
        )
    ]


def _to_cut_nodes(subject: Json, *, names: Names) -> list[Json]:
    """What the part "mig" is granted: on nodes, and on the one config map in its namespace."""
    name = f"{names.own}-mig"
    namespace, _, config_map = names.mig_config.partition("/")
    on_nodes = [right for right in MIG_RIGHTS if right.resource == "nodes"]
    on_one = [right for right in MIG_RIGHTS if right.resource == "configmaps"]
    return [
        *_granted("ClusterRole", _metadata(name), _rules(on_nodes), to=subject),
        *_granted(
            "Role",
            {**_metadata(name), "namespace": namespace},
            _rules(on_one, resourceNames=[config_map]),
            to=subject,
        ),
    ]


def _granted(kind: str, metadata: Json, rules: list[Json], *, to: Json) -> list[Json]:
    """A role of that kind, and its binding."""
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
            "subjects": [to],
        },
    ]


def _to_claim_devices(subject: Json, *, user: str, names: Names) -> list[Json]:
    """What the part "dra" is granted, the class of its claims, and that they are its alone."""
    name = f"{names.own}-dra"
    policy = _policy(user=user, names=names)
    changing = {"apiGroups": [DEVICES], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    resources = ["resourceclaims", "resourceclaims/status"]
    policy["matchConstraints"] = {"resourceRules": [{**changing, "resources": resources}]}
    # A claim's spec never changes, and has no priority: what is left is whose it is. A pod has the
    # claims that its status names, so nobody puts another in the place of one.
    policy["validations"] = [
        policy["validations"][0],
        {
            "expression": "request.operation != 'CREATE'"
            f" || !object.metadata.?name.orValue('').matches('{OURS}')",
            "message": f"only {user} makes claims that are called as those of Berth's pods",
            "reason": "Forbidden",
        },
    ]
    return [
        device_class(names=names),
        *_granted("ClusterRole", _metadata(name), _rules(OF_PARTS[Part.DRA]), to=subject),
        *_enforced(f"{names.own}-claims", policy, names=names),
        *_enforced(f"{names.own}-claimants", _claimants(user=user), names=names),
    ]


def _claimants(*, user: str) -> Json:
    """Who is not that user makes no pod that names a claim of Berth's: it would share the devices.
    A policy can't look a claim up, so its name says whose it is."""
    policy: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],  # what claims a pod names can't change afterwards
                    "resources": ["pods"],
                }
            ]
        },
        "matchConditions": [
            {"name": "by-another", "expression": f"request.userInfo.username != '{user}'"}
        ],
        "validations": [
            {
                "expression": "!object.spec.?resourceClaims.orValue([]).exists(claim,"
                f" claim.?resourceClaimName.orValue('').matches('{OURS}'))",
                "message": f"only {user} makes pods that name claims of Berth's pods",
                "reason": "Forbidden",
            }
        ],
    }
    return policy


def _to_autoscale(subject: Json, *, names: Names) -> list[Json]:
    """What the part "autoscale" is granted, some of it in Berth's own namespace alone, and the
    priority of its placeholders."""
    metadata = _metadata(f"{names.own}-autoscale")
    at_home = {**metadata, "namespace": names.home}
    return [
        placeholders.priority_class(names=names),
        *_granted("ClusterRole", metadata, _rules(AUTOSCALE_RIGHTS), to=subject),
        *_granted("Role", at_home, _rules(REQUEST_RIGHTS), to=subject),
    ]


def _to_show_logs(subject: Json, *, names: Names) -> list[Json]:
    """What the part "logs" is granted."""
    name = f"{names.own}-logs"
    return _granted("ClusterRole", _metadata(name), _rules(LOG_RIGHTS), to=subject)


def _enforced(name: str, policy: Json, *, names: Names) -> list[Json]:
    """A policy, in the namespaces of this installation."""
    ours = {"matchLabels": {names.label_installation: names.installation}}
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(name),
            "spec": policy,
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": _metadata(name),
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": ours},
            },
        },
    ]


def _policy(*, user: str, names: Names) -> Json:
    """Whoever is not that user neither gives a pod our labels nor takes or changes them, nor
    changes the spec of a pod that had one, nor makes a pod of our priorities."""
    ours = [
        names.label_installation,
        names.label_workload,
        names.label_attempt,
        names.label_rank,
    ]
    classes = [names.priority_class(priority) for priority in PRIORITIES]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    # Through status labels can be changed as well, through the last two a spec.
                    "resources": [
                        "pods",
                        "pods/status",
                        "pods/ephemeralcontainers",
                        "pods/resize",
                    ],
                }
            ]
        },
        "matchConditions": [
            {"name": "by-another", "expression": f"request.userInfo.username != '{user}'"}
        ],
        "variables": [
            {
                "name": "before",
                "expression": "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})",
            },
            {"name": "after", "expression": "object.metadata.?labels.orValue({})"},
        ],
        "validations": [
            {
                "expression": f"{ours}.all(key, variables.after[?key] == variables.before[?key])",
                "message": f"only {user} gives pods the labels of Berth's installation "
                f"{names.installation}, or changes them",
                "reason": "Forbidden",
            },
            {
                # Both are as the API server holds them, after defaulting. Nothing was, on CREATE.
                "expression": f"!{ours}.exists(key, key in variables.before)"
                " || object.spec == oldObject.spec",
                "message": f"only {user} changes the spec of a pod of Berth's installation "
                f"{names.installation}, its gate and its image included",
                "reason": "Forbidden",
            },
            {
                # It can't change afterwards.
                "expression": "request.operation != 'CREATE'"
                f" || !(object.spec.?priorityClassName.orValue('') in {classes})",
                "message": f"only {user} makes pods of the priorities of Berth's installation "
                f"{names.installation}",
                "reason": "Forbidden",
            },
        ],
    }


def _home(*, names: Names) -> Json:
    """Made as a project's namespace is, and its pods' account is made in it, so that a probe's pod
    is admitted by the same rules. It has no network policy, no default sizes and no quota."""
    made = manifests.namespace(names.home, names=names)
    made["metadata"]["labels"] |= _LABELS
    return made


def _account(name: str, home: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {**_metadata(name), "namespace": home},
    }


def _next(*, names: Names, user: str | None, token_h: int) -> str:
    if user:
        return f"# Apply it, then register the cluster with a credential of the user {user}.\n"
    return (
        "# Apply it, then register the cluster with a token of the account:\n"
        f"#   kubectl create token {names.own} --namespace {names.home} --duration {token_h}h\n"
    )


def _metadata(name: str) -> Json:
    return {"name": name, "labels": dict(_LABELS)}
