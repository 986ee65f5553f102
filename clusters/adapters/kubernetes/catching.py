"""Pure: the policies by which work that others make in a cluster waits for Berth.

Catching is at pods, so that it is one rule for all that makes them, now and later. In namespaces
of this installation a pod that others make, and that has the queue label or asks for a device,
gets Berth's scheduling gate, a label that says so, and the name of who made it. That is a mutating
policy, or, where the API server is too old for those, a webhook that does the same (`hook`); a
validating policy holds that it was done, and that nobody undoes it. That a gated pod
names no node, by which it would pass the scheduler by, the API server itself sees to. What nobody
could be charged for, a claim that others may share, is refused, and who asks for no device sees
none.
"""

from itertools import groupby
from typing import Any

from clusters.adapters.kubernetes.hook import Hook, configuration
from clusters.adapters.kubernetes.names import DEVICES, VISIBLE, Names
from clusters.adapters.kubernetes.rights import CATCHING

type Json = dict[str, Any]  # Any: an object of the API, as JSON

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_NAMESPACE = "kubernetes.io/metadata.name"
"""A label of each namespace: its name."""
_EDITABLE = (
    "containers",
    "initContainers",
    "tolerations",
    "nodeSelector",
    "affinity",
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
)
"""What of a pod's spec the API server lets people change, besides taking gates away."""
_IS_DEVICE = " || ".join(f"resource.startsWith('{prefix}')" for prefix in DEVICES)
_ONE_ASKS = (
    "[one.?resources.?limits.orValue({}), one.?resources.?requests.orValue({})].exists(asked,"
    f" asked.exists(resource, {_IS_DEVICE}))"
)
"""In CEL: whether the container `one` asks for a device."""
_CREATE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}


def documents(*, names: Names, user: str, hook: Hook | None = None) -> list[Json]:
    """What Berth has to read for it, and what changes pods and what holds that it did: two
    policies, each with its binding, or `hook` and one; `user` is who Berth is in the cluster."""
    name = f"{names.own}-catch"
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(name),
            "rules": [
                {"apiGroups": [group], "resources": [r.resource for r in rights], "verbs": ["get"]}
                for group, rights in groupby(CATCHING, key=lambda right: right.group)
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            # An account is a user of that name, too.
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
        },
        *_changing(name, names=names, user=user, hook=hook),
        _policy("Validating", name, _validating(names=names, user=user)),
        _binding("Validating", name, names=names, validationActions=["Deny"]),
    ]


def _changing(name: str, *, names: Names, user: str, hook: Hook | None) -> list[Json]:
    if hook is None:
        return [
            _policy("Mutating", name, _mutating(names=names, user=user)),
            _binding("Mutating", name, names=names),
        ]
    # What Berth itself runs from must be made while its web server is not there.
    apart = {"key": _NAMESPACE, "operator": "NotIn", "values": [names.home]}
    condition, selector = _by_another(user), _ours(names=names) | {"matchExpressions": [apart]}
    return [configuration(hook=hook, name=name, conditions=[condition], selector=selector)]


def _policy(kind: str, name: str, spec: Json) -> Json:
    kind = f"{kind}AdmissionPolicy"
    return {"apiVersion": _ADMISSION, "kind": kind, "metadata": _metadata(name), "spec": spec}


def _binding(kind: str, name: str, *, names: Names, **spec: list[str]) -> Json:
    return {
        "apiVersion": _ADMISSION,
        "kind": f"{kind}AdmissionPolicyBinding",
        "metadata": _metadata(name),
        "spec": {
            "policyName": name,
            **spec,
            "matchResources": {"namespaceSelector": _ours(names=names)},
        },
    }


def _ours(*, names: Names) -> Json:
    """The namespaces of this installation."""
    return {"matchLabels": {names.label_installation: names.installation}}


def _metadata(name: str) -> Json:
    return {"name": name, "labels": {"app.kubernetes.io/name": "berth"}}


def _asks(*, names: Names) -> str:
    """In CEL: whether a pod has the queue label or a claim, or any of its containers asks for a
    device."""
    return (
        f"('{names.label_queue}' in object.metadata.?labels.orValue({{}})"
        " || (object.spec.containers + object.spec.?initContainers.orValue([]))"
        f".exists(one, {_ONE_ASKS})"
        " || object.spec.?resourceClaims.orValue([]).size() > 0)"
    )


def _blind(field: str) -> str:
    """In CEL: of the containers under `field` those that ask for no device, told that they see
    none. One that says itself what it sees is left to be refused."""
    says = f"one.?env.orValue([]).exists(set, set.name == '{VISIBLE}')"
    those = f"object.spec.?{field}.orValue([]).filter(one, !{_ONE_ASKS} && !{says})"
    kind = f"Object.spec.{field}"
    void = f"{kind}.env{{name: '{VISIBLE}', value: 'void'}}"
    return f"{field}: {those}.map(one, {kind}{{name: one.name, env: [{void}]}})"


def _only_gates_of_others(*, names: Names) -> str:
    """In CEL: whether an update takes away gates, of which none is Berth's, and that is all."""
    alike = " && ".join(f"object.spec.?{key} == oldObject.spec.?{key}" for key in _EDITABLE)
    gated = (
        f"{spec}.?schedulingGates.orValue([]).exists(gate, gate.name == '{names.gate}')"
        for spec in ("object.spec", "oldObject.spec")
    )
    return f"(request.?subResource.orValue('') == '' && {' == '.join(gated)} && {alike})"


def _by_another(user: str) -> Json:
    return {"name": "by-another", "expression": f"request.userInfo.username != '{user}'"}


def _mutating(*, names: Names, user: str) -> Json:
    caught = (
        f"!{_asks(names=names)} ? Object{{}} : "
        "Object{metadata: Object.metadata{"
        f"labels: {{'{names.label_caught}': '{names.installation}'}},"
        f" annotations: {{'{names.annotation_creator}': request.userInfo.username}}}},"
        " spec: Object.spec{schedulingGates:"
        f" [Object.spec.schedulingGates{{name: '{names.gate}'}}]}}}}"
    )
    blind = f"Object{{spec: Object.spec{{{_blind('containers')}, {_blind('initContainers')}}}}}"
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": [{**_CREATE, "resources": ["pods"]}]},
        "matchConditions": [_by_another(user)],
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": given}}
            for given in (caught, blind)
        ],
    }


def _validating(*, names: Names, user: str) -> Json:
    """What is caught stays so: its label, what it says of its place in the queue, and its spec,
    gate and sizes included."""
    caught, queue = names.label_caught, names.label_queue
    labels = [queue, names.label_priority]
    said = [
        names.annotation_gang,
        names.annotation_gang_size,
        names.annotation_flavors,
        names.annotation_creator,
    ]
    changing = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods", "pods/status", "pods/ephemeralcontainers", "pods/resize"],
    }
    rules = {
        f"!variables.made || variables.caught == {_asks(names=names)}"
        f" && (!variables.caught || variables.labels['{caught}'] == '{names.installation}'"
        f" && variables.annotations[?'{names.annotation_creator}']"
        " == optional.of(request.userInfo.username)"
        f" && object.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{names.gate}'))":
        f"a pod that has the label {queue} or asks for a device gets the label {caught} and the"
        f" gate {names.gate} from {names.own}-catch, and no other pod does",
        f"!variables.made || !('{queue}' in variables.labels)"
        f" || variables.labels['{queue}'] in ['', request.namespace]":
        f"the label {queue} names another project than that of this namespace: leave it empty, or"
        " give it the name of the namespace",
        "!variables.made || object.spec.?resourceClaims.orValue([])"
        ".all(claim, claim.?resourceClaimName.orValue('') == '')":
        "the pod names a resource claim, which others could share, so nobody could be charged for"
        " it: name a template of claims (resourceClaimTemplateName)",
        "variables.made || !variables.was_caught"
        f" || !('{names.label_workload}' in variables.before)"
        " || object.?status.?resourceClaimStatuses == oldObject.?status.?resourceClaimStatuses":
        f"only {user} changes which resource claims a pod has that runs from Berth's queue",
        "!variables.made || (object.spec.containers + object.spec.?initContainers.orValue([]))"
        f".all(one, one.?env.orValue([]).all(set, set.name != '{VISIBLE}'"
        " || set.?value.orValue('') == 'void'))":
        f"a container sets {VISIBLE}: leave it out, and ask for devices among the limits of the"
        " container",
        # Where Berth itself may run nothing is asked of its web server.
        f"!variables.made || request.namespace == '{names.home}'"
        " || (object.spec.containers + object.spec.?initContainers.orValue([]))"
        f".all(one, {_ONE_ASKS}"
        f" || one.?env.orValue([]).exists(set, set.name == '{VISIBLE}'))":
        f"a container that asks for no device gets {VISIBLE} from {names.own}-catch, which did not"
        " give it: ask who runs Berth",
        f"variables.made || variables.labels[?'{caught}'] == variables.before[?'{caught}']"
        f" && (!variables.was_caught || {labels}.all(key,"
        " variables.labels[?key] == variables.before[?key])"
        f" && {said}.all(key, variables.annotations[?key] == variables.said[?key]))":
        f"only {user} changes what a pod that waits in Berth's queue, or runs from there, says of"
        f" it: the labels {', '.join([caught, *labels])}, and the annotations {', '.join(said)}",
        "variables.made || !variables.was_caught || object.spec == oldObject.spec"
        f" || {_only_gates_of_others(names=names)}":
        f"only {user} changes the spec of a pod that waits in Berth's queue, or runs from there,"
        " its gate and its sizes included; of others, gates alone are taken away, by themselves",
    }  # fmt: skip
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [changing]},
        "matchConditions": [_by_another(user)],
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in {
                "made": "oldObject == null",
                "labels": "object.metadata.?labels.orValue({})",
                "annotations": "object.metadata.?annotations.orValue({})",
                "before": "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})",
                "said": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
                "caught": f"'{caught}' in variables.labels",
                "was_caught": f"'{caught}' in variables.before",
            }.items()
        ],
        "validations": [
            {"expression": expression, "message": message, "reason": "Forbidden"}
            for expression, message in rules.items()
        ],
    }
