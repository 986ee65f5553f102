"""Endpoints about node pools that no cluster publishes: an operator declares them."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors
from clusters.services import declared_pools
from clusters.services.autoscaling import Described
from clusters.services.declared_pools import Declared
from clusters.web.node_pool_api import NodePoolOut, NodePoolsApi, NodeShapeIn
from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values


class DeclaredIn(StrictSerializer):
    name = Text(max_length=253)
    selector = serializers.DictField(
        child=Text(max_length=63, allow_blank=True),
        help_text="Labels that all nodes of the pool have, and no other node has.",
    )
    request_class = Text(
        max_length=253,
        help_text="Of the ProvisioningRequests by which its nodes are asked for, such as"
        " queued-provisioning.gke.io.",
    )
    parameters = serializers.DictField(
        child=Text(max_length=255, allow_blank=True),
        required=False,
        help_text="Of these requests, such as maxRunDurationSeconds.",
    )
    nodes = serializers.IntegerField(
        help_text="How many it may have at most. Work that lacks more than 256 of one pool does"
        " not wait for them."
    )
    node = NodeShapeIn(help_text="What one has; it counts until the pool has had one.")


class DeclaringApi(NodePoolsApi):
    @operation(
        "node_pools_declare",
        tag="clusters",
        summary="Declare a pool whose nodes are asked for all at once, or change one (fleet"
        " operators)",
        takes=DeclaredIn,
        answers={200: NodePoolOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            asked = self.body(DeclaredIn)
            node = Described(**asked.pop("node"))
            pool = declared_pools.declare(
                cluster=selectors.cluster(id=id),
                pool=Declared(**{"parameters": {}, **asked}),
                node=node,
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return NodePoolOut(selectors.coming_of(pool=pool)).data

        return self.once(make, status=200)


class DeclaredApi(ApiView):
    @operation(
        "node_pools_forget",
        tag="clusters",
        summary="Expect nothing more of a declared pool (fleet operators)",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        access.authorize_fleet(self.actor, Action.OPERATE)
        declared_pools.forget(
            id=id, actor=self.actor.label, actor_name=self.actor.name, at=self.at
        )
        return Response(status=204)
