"""Pure: what an administrator applies so that Berth may work in a cluster, and no more than that.

A service account with the rights of `rights`, and a policy of admission: in namespaces of this
installation, pods with its labels are made by that account alone. Pods without them are others'
business: an adopted namespace may have controllers that make pods. Nothing else of a pod that is
there already is held up: kubelets, the scheduler and the garbage collector change its status, its
binding and its finalizers, never those labels.
"""

from itertools import groupby
from typing import Any

import yaml

from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import RIGHTS

type Json = dict[str, Any]  # Any: an object of the API, as JSON

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"


def text(*, name: str, names: Names, token_h: int) -> str:
    """The manifest as YAML, with what each right is for, and how to get a token of so many hours.

    `name` is that of the account and of what belongs to it.
    """
    rights = "".join(f"#   {right.verb} {right.resource}: {right.why}\n" for right in RIGHTS)
    return (
        f"# What Berth's installation {names.installation} may do in this cluster, and no more:\n"
        f"{rights}"
        "# Apply it, then register the cluster with a token of the account:\n"
        f"#   kubectl create token {name} --namespace {_home(name)} --duration {token_h}h\n"
        "# Two powers are wide by nature: who may create pods in a namespace may mount what is\n"
        "# in it, and workloads live in many namespaces. Keep the token as a cluster's key.\n"
    ) + yaml.safe_dump_all(documents(name=name, names=names), sort_keys=False)


def documents(*, name: str, names: Names) -> list[Json]:
    """The objects, in the order in which they can be applied."""
    home, policy = _home(name), f"{name}-pods"
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            # As a project's, so that a probe meets there what a project's pods will meet.
            "metadata": _metadata(
                home,
                **{
                    names.label_installation: names.installation,
                    "pod-security.kubernetes.io/enforce": "restricted",
                },
            ),
        },
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {**_metadata(name), "namespace": home},
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(name),
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": [resource],
                    "verbs": [right.verb for right in rights],
                }
                for resource, rights in groupby(RIGHTS, key=lambda right: right.resource)
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": home}],
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(policy),
            "spec": _policy(account=f"system:serviceaccount:{home}:{name}", names=names),
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
    ]


def _policy(*, account: str, names: Names) -> Json:
    """Whoever is not the account neither gives a pod our labels nor takes or changes them."""
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
                    "resources": ["pods"],
                }
            ]
        },
        "matchConditions": [
            {"name": "by-another", "expression": f"request.userInfo.username != '{account}'"}
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
                "message": f"only {account} gives pods the labels of Berth's installation "
                f"{names.installation}, or changes them",
                "reason": "Forbidden",
            }
        ],
    }


def _home(name: str) -> str:
    """The account's own namespace."""
    return f"{name}-system"


def _metadata(name: str, **labels: str) -> Json:
    return {"name": name, "labels": {"app.kubernetes.io/name": "berth", **labels}}
