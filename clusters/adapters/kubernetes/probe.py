"""What of all that Berth needs of a cluster works, asked step by step; nothing is left behind.

A step that fails does not stop those after it, unless the cluster does not answer or does not know
who asks: then all of them would say the same. What can't work for want of a right that was named
already is left out.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote

from clusters.adapters.kubernetes import manifests, probe_parts
from clusters.adapters.kubernetes.checks import Json, Malformed, mapping, objects
from clusters.adapters.kubernetes.client import APPLY_PATCH, JSON, Client
from clusters.adapters.kubernetes.confinement import priority_class_path, priority_classes
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import GPU, Names
from clusters.adapters.kubernetes.reviews import may
from clusters.adapters.kubernetes.rights import RIGHTS, SCHEDULING, Right
from clusters.port import (
    ClusterError,
    ClusterVersion,
    Fault,
    Listing,
    NodeReport,
    PodRequest,
    ProbeStep,
    Verdict,
)

FLOOR = (1, 30)
"""The first version whose policies of admission and scheduling gates are stable."""
_VERSION = re.compile(r"v(\d{1,3})\.(\d{1,3})\b")
_IDENTITY = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_NAME = "berth-probe"
_OF_PRIORITIES = ("value", "preemptionPolicy", "globalDefault")
_FATAL = frozenset({Fault.UNREACHABLE, Fault.UNAUTHORIZED})
# Rights that Berth never uses, and with which its token would be worth stealing.
_WIDE = {
    "do everything": {"verb": "*", "group": "*", "resource": "*"},
    "read secrets": {"verb": "get", "resource": "secrets"},
    "list secrets": {"verb": "list", "resource": "secrets"},
    "run commands in pods": {"verb": "create", "resource": "pods", "subresource": "exec"},
    "change roles": {"verb": "patch", "group": "rbac.authorization.k8s.io", "resource": "*"},
}


class Probe:
    """One probe of one cluster: iterate over `steps` once."""

    def __init__(
        self,
        client: Client,
        *,
        names: Names,
        version: Callable[[], ClusterVersion],
        nodes: Callable[[], Listing[NodeReport]],
    ) -> None:
        self._client = client
        self._names = names
        self._version = version
        self._nodes = nodes
        self._lacks: set[str] = set()

    def steps(self) -> Iterator[ProbeStep]:
        for name, act in self._acts():
            try:
                yield act(name)
            except ClusterError as error:
                yield ProbeStep(name, Verdict.FAILS, str(error))
                if error.fault in _FATAL:
                    return
            except Malformed as error:
                said = f"The cluster's answer makes no sense: {error}"
                yield ProbeStep(name, Verdict.FAILS, said)

    def _acts(self) -> Iterator[tuple[str, Callable[[str], ProbeStep]]]:
        yield "reach", self._reach
        yield "identity", self._identity
        yield "version", self._supported
        for right in RIGHTS:
            yield str(right), partial(self._right, right=right)
        yield from probe_parts.steps(self._client, names=self._names)
        yield "excess", self._excess
        if "list nodes" not in self._lacks:
            yield "nodes", self._hardware
        if f"get priorityclasses.{SCHEDULING}" not in self._lacks:
            yield "priority classes", self._priorities
        if not self._lacks & {"create namespaces", "patch namespaces"}:
            yield "make a namespace", self._namespace
        if not self._lacks & {"create pods", "priority classes"}:
            yield "make a pod", self._pod

    def _reach(self, name: str) -> ProbeStep:
        """Any answer will do: what it means is for the steps after it."""
        try:
            self._client.call("GET", "/version")
        except ClusterError as error:
            if error.fault is Fault.UNREACHABLE:
                raise
        return ProbeStep(name, Verdict.WORKS, "it answers")

    def _identity(self, name: str) -> ProbeStep:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        try:
            answer = self._client.call("POST", _IDENTITY, body=review)
        except ClusterError as error:
            if error.fault is Fault.UNAUTHORIZED:
                said = f"the credential is not accepted, or no longer: store another ({error})"
                raise ClusterError(error.fault, said) from None
            raise
        user = mapping(mapping(answer, "status"), "userInfo").get("username")
        if not isinstance(user, str) or not user:
            raise Malformed("it names nobody")
        return ProbeStep(name, Verdict.WORKS, f"it knows Berth as {printable(user)}")

    def _supported(self, name: str) -> ProbeStep:
        found = self._version().version
        version = _VERSION.match(found)
        least = f"v{FLOOR[0]}.{FLOOR[1]}"
        if version is None:
            return ProbeStep(name, Verdict.FAILS, f"{found} is no version of Kubernetes")
        if (int(version[1]), int(version[2])) < FLOOR:
            return ProbeStep(
                name, Verdict.FAILS, f"{found} is too old: it has to be {least} at least"
            )
        return ProbeStep(name, Verdict.WORKS, f"{found} ({least} is the least)")

    def _right(self, name: str, *, right: Right) -> ProbeStep:
        if may(self._client, verb=right.verb, group=right.group, resource=right.resource):
            return ProbeStep(name, Verdict.WORKS, f"may {right}")
        self._lacks.add(str(right))
        said = (
            f"may not {right}: add the verb to the ClusterRole"
            f" {self._names.own}; it is needed to {right.why}"
        )
        return ProbeStep(name, Verdict.FAILS, said)

    def _excess(self, name: str) -> ProbeStep:
        wide = [what for what, asked in _WIDE.items() if may(self._client, **asked)]
        if wide:
            said = f"may {', '.join(wide)}: Berth never does, so give it less"
            return ProbeStep(name, Verdict.WARNING, said)
        return ProbeStep(name, Verdict.WORKS, "has none of the wide rights that are looked for")

    def _hardware(self, name: str) -> ProbeStep:
        nodes = self._nodes().items
        equipped = sum(1 for node in nodes if node.devices)
        said = f"{len(nodes)} nodes, {equipped} of them with GPUs"
        verdict = Verdict.WORKS if equipped else Verdict.WARNING
        return ProbeStep(name, verdict, said)

    def _priorities(self, name: str) -> ProbeStep:
        """Those of its pods, which an administrator makes with the manifest."""
        missing, amiss = [], []
        for wanted in priority_classes(names=self._names):
            one = wanted["metadata"]["name"]
            try:
                found = self._client.call("GET", priority_class_path(one))
            except ClusterError as error:
                if error.fault is not Fault.NOT_FOUND:
                    raise
                missing.append(one)
            else:
                if mapping(found, "metadata").get("name") != one:
                    raise Malformed(f"it is not {one}")
                if any(found.get(field, False) != wanted[field] for field in _OF_PRIORITIES):
                    amiss.append(one)
        if missing:
            self._lacks.add(name)  # no pod can be made without
            said = f"there is no {', '.join(missing)}: apply what"
            said = f"{said} `manage.py cluster_manifest` prints"
            return ProbeStep(name, Verdict.FAILS, said)
        if amiss:  # Kubernetes changes neither value nor policy of one that is there
            said = (
                f"{', '.join(amiss)}: not as `manage.py cluster_manifest` prints them, so delete"
            )
            return ProbeStep(name, Verdict.WARNING, f"{said} them and apply that")
        return ProbeStep(name, Verdict.WORKS, "those of its pods are there")

    def _namespace(self, name: str) -> ProbeStep:
        made = self._tried(
            "PATCH",
            f"/api/v1/namespaces/{_NAME}",
            body=manifests.namespace(_NAME, names=self._names),
            content_type=APPLY_PATCH,
            fieldManager=self._names.field_manager,
            force="true",
        )
        return _untried(name) if made is None else ProbeStep(name, Verdict.WORKS, "could make one")

    def _pod(self, name: str) -> ProbeStep:
        """In Berth's own namespace, which is as a project's is, policy and all: one that was
        made by a dry run is not there."""
        home = self._names.home
        request = PodRequest(
            namespace=home,
            name=_NAME,
            workload=_NAME,
            attempt=1,
            rank=0,
            image="registry.k8s.io/pause:3.10",
            command=(),
            args=(),
            env=(),
            cpu_milli=100,
            memory_mib=64,
            resources=((GPU, 1),),
        )
        path = f"/api/v1/namespaces/{quote(home, safe='')}/pods"
        try:
            made = self._tried("POST", path, body=manifests.pod(request, names=self._names))
        except ClusterError as error:
            if error.fault is not Fault.NOT_FOUND:
                raise
            said = f"there is no namespace {home}: apply what `manage.py cluster_manifest` prints"
            return ProbeStep(name, Verdict.FAILS, said)
        if made is None:
            return _untried(name)
        gates = [gate.get("name") for gate in objects(mapping(made, "spec"), "schedulingGates")]
        if self._names.gate not in gates:
            said = f"something in the cluster takes the gate {self._names.gate} off: a webhook?"
            return ProbeStep(name, Verdict.FAILS, said)
        return ProbeStep(name, Verdict.WORKS, f"could make one, gated, in {home}")

    def _tried(
        self, method: str, path: str, *, body: Json, content_type: str = JSON, **query: str
    ) -> Json | None:
        """What would be made, after all admission; None where a part of that can't only try."""
        try:
            return self._client.call(
                method,
                path,
                query={**query, "dryRun": "All"},
                body=body,
                content_type=content_type,
            )
        except ClusterError as error:
            if "does not support dry run" in str(error):
                return None
            raise


def _untried(name: str) -> ProbeStep:
    said = "an admission webhook does not support dry runs, so this shows only with real work"
    return ProbeStep(name, Verdict.WARNING, said)
