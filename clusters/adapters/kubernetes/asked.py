"""A cluster that makes nodes by itself: what is read of that, and what it is asked by. What is
sent and what comes back is in karpenter, placeholders and node_requests."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from clusters.adapters.kubernetes import karpenter, node_requests, placeholders
from clusters.adapters.kubernetes.checks import Json
from clusters.adapters.kubernetes.objects import Objects
from clusters.autoscaling import (
    Autoscaling,
    NodeRequest,
    NodeRequestReport,
    PlaceholderReport,
    PlaceholderRequest,
)
from clusters.port import MOST_NODES, ClusterError, Fault, Listing
from controlplane.kernel.crash import crash

_NOT_SERVED = frozenset({Fault.NOT_FOUND, Fault.FORBIDDEN})
"""The API has no such resource, or none for Berth."""


class Asked(Objects):
    """`AutoscalingPort` on a Kubernetes API."""

    def read_autoscaling(self) -> Autoscaling | None:
        pools = self._served(karpenter.POOLS, karpenter.pool, most=karpenter.MOST_POOLS)
        claims = self._served(karpenter.CLAIMS, karpenter.claim, most=MOST_NODES)
        read = partial(node_requests.report, names=self._names)
        requests = self._served(node_requests.EVERYWHERE, read, most=MOST_NODES)
        karpenters = pools is not None and claims is not None
        if not karpenters and requests is None:
            return None
        return Autoscaling(
            pools=pools.items if pools and claims else (),
            claims=claims.items if pools and claims else (),
            left_out=tuple(
                each for found in (pools, claims, requests) if found for each in found.left_out
            ),
            requests=None if requests is None else requests.items,
        )

    def _served[Report](
        self, path: str, translate: Callable[[Json], Report], *, most: int
    ) -> Listing[Report] | None:
        """None where there is no such resource, or none for Berth."""
        try:
            return self._list(path, translate, most=most)
        except ClusterError as error:
            if error.fault in _NOT_SERVED:
                return None
            raise

    def list_placeholders(self) -> tuple[PlaceholderReport, ...]:
        read = partial(placeholders.report, names=self._names)
        ours = placeholders.query(names=self._names)
        return self._list(self._pods, read, chosen=ours).items

    def create_placeholder(self, *, request: PlaceholderRequest) -> None:
        self._make(self._pods, placeholders.pod(request, names=self._names))

    def delete_placeholder(self, *, found: PlaceholderReport) -> None:
        self._delete(_one(self._pods, found.name), {"uid": found.uid}, gracePeriodSeconds=0)

    def list_node_requests(self) -> tuple[NodeRequestReport, ...]:
        names = self._names
        home, ours = names.home, placeholders.query(names=names)
        read = partial(node_requests.report, names=names)
        try:
            requests = self._list(node_requests.requests_path(home), read, chosen=ours)
        except ClusterError as error:
            if error.fault is Fault.NOT_FOUND:
                return ()
            raise
        read = partial(node_requests.template_report, names=names)
        templates = self._list(node_requests.templates_path(home), read, chosen=ours)
        found = {one.name: one for one in templates.items}
        for one in requests.items:
            template = found.get(one.name)
            uid = template.template_uid if template else ""
            found[one.name] = replace(one, template_uid=uid)
        return tuple(found.values())

    def create_node_request(self, *, request: NodeRequest) -> None:
        names = self._names
        templates = node_requests.templates_path(names.home)
        self._make(templates, node_requests.template(request, names=names))
        crash("N4")
        requests = node_requests.requests_path(names.home)
        self._make(requests, node_requests.body(request, names=names))

    def delete_node_request(self, *, found: NodeRequestReport) -> None:
        home = self._names.home
        if found.uid:
            self._delete(_one(node_requests.requests_path(home), found.name), {"uid": found.uid})
            crash("N5")
        if found.template_uid:
            template = _one(node_requests.templates_path(home), found.name)
            self._delete(template, {"uid": found.template_uid})

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{quote(self._names.home, safe='')}/pods"

    def _make(self, path: str, body: Json) -> None:
        """One of that name that is there already is left as it is."""
        try:
            self._client.call("POST", path, body=body)
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:
                raise


def _one(path: str, name: str) -> str:
    return f"{path}/{quote(name, safe='')}"
