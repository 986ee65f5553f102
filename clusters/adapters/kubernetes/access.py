"""Pure: what an administrator applies so that Berth may work in a cluster, and no more than that.

A service account, or a user whom the cluster knows already, with the rights of `rights`, and a
policy of admission: in namespaces of this installation, pods with its labels are made by that one
alone, and their spec, gate and image included, is changed by that one alone. Pods without them are
others' business: an adopted namespace may have controllers that make pods. Nothing else of a pod
that is there already is held up: kubelets, the scheduler and the garbage collector change its
status, its binding and its finalizers, never those labels nor its spec.
"""

from itertools import groupby
from typing import Any

import yaml

from clusters.adapters.kubernetes import catching, manifests
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import CATCHING, RIGHTS

type Json = dict[str, Any]  # Any: an object of the API, as JSON

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_LABELS = {"app.kubernetes.io/name": "berth"}


def text(*, names: Names, user: str | None, token_h: int, catch: bool = False) -> str:
    """The manifest as YAML, with what each right is for.

    It is for that user, or else for a service account of its own, with how to get a token of it
    that is good for so many hours. With `catch`, what others make there waits for Berth
    (`catching`).
    """
    rights = "".join(
        f"#   {right}: {right.why}\n" for right in RIGHTS + (CATCHING if catch else ())
    )
    return (
        f"# What Berth's installation {names.installation} may do in this cluster, and no more:\n"
        f"{rights}"
        f"{_next(names=names, user=user, token_h=token_h)}"
        "# Two powers are wide by nature: who may create pods in a namespace may mount what is\n"
        "# in it, and workloads live in many namespaces. Keep the credential as a cluster's key.\n"
    ) + yaml.safe_dump_all(documents(names=names, user=user, catch=catch), sort_keys=False)


def documents(*, names: Names, user: str | None = None, catch: bool = False) -> list[Json]:
    """The objects, in the order in which they can be applied."""
    name, home, policy = names.own, names.home, f"{names.own}-pods"
    berth = user or f"system:serviceaccount:{home}:{name}"
    account: Json = {"kind": "ServiceAccount", "name": name, "namespace": home}
    return [
        _home(names=names),
        *([] if user else [_account(name, home)]),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(name),
            "rules": [
                {
                    "apiGroups": [group],
                    "resources": [resource],
                    "verbs": [right.verb for right in rights],
                }
                for (group, resource), rights in groupby(
                    RIGHTS, key=lambda right: (right.group, right.resource)
                )
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user} if user else account],
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(policy),
            "spec": _policy(user=berth, names=names),
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": _metadata(policy),
            "spec": {
                "policyName": policy,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {
                        "matchLabels": {names.label_installation: names.installation}
                    }
                },
            },
        },
        *(catching.documents(names=names, user=berth) if catch else []),
    ]


def _policy(*, user: str, names: Names) -> Json:
    """Whoever is not that user neither gives a pod our labels nor takes or changes them, nor
    changes the spec of a pod that had one."""
    ours = [
        names.label_installation,
        names.label_workload,
        names.label_attempt,
        names.label_rank,
    ]
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
        ],
    }


def _home(*, names: Names) -> Json:
    """Made as a project's namespace is, so that a probe meets there what a project's pods will."""
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
