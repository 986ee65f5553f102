"""Endpoints about nodes that can come: the pools that make them, and what such a node has."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors
from clusters.models import NodePool
from clusters.selectors import NodeShape
from clusters.services import autoscaling, clusters
from clusters.web.serializers import ClusterOut, Rows
from controlplane.api.fields import StrictSerializer, Text
from controlplane.api.schema import operation
from controlplane.api.views import ApiView
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values


class NodeShapeOut(serializers.Serializer[NodeShape]):
    """What a node of the pool is expected to have; amounts are allocatable."""

    model = serializers.CharField()
    gpus = serializers.IntegerField()
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    learnt = serializers.BooleanField(
        help_text="From a node that the pool has had; else an operator said it."
    )


class NodePoolOut(serializers.Serializer[Rows]):
    id = serializers.UUIDField(source="pool.id")
    name = serializers.CharField(source="pool.name")
    ready = serializers.BooleanField(source="pool.ready", help_text="Whether nodes come of it.")
    accelerator = serializers.CharField(
        source="pool.accelerator",
        allow_blank=True,
        help_text="Its GPUs in the words of its template; empty where that says nothing.",
    )
    node = NodeShapeOut(allow_null=True, help_text="null while nobody knows.")
    request_class = serializers.CharField(
        source="pool.request_class",
        allow_blank=True,
        help_text="Of the requests by which its nodes are asked for, of a pool that an operator"
        " declared; empty of one that the cluster itself tells of.",
    )
    selector = serializers.DictField(
        source="pool.selector",
        child=serializers.CharField(allow_blank=True),
        help_text="Labels that all nodes of a declared pool have.",
    )
    parameters = serializers.DictField(
        source="pool.parameters",
        child=serializers.CharField(allow_blank=True),
        help_text="Of the requests for nodes of a declared pool.",
    )
    room_count = serializers.IntegerField(
        source="pool.room_count",
        allow_null=True,
        help_text="Nodes that can still come within its limits; null: no limit.",
    )
    making_count = serializers.IntegerField(
        source="pool.making_count", help_text="Nodes that are being made."
    )
    start_count = serializers.IntegerField(
        source="pool.start_count", help_text="How many nodes the two times are learnt from."
    )
    start_p50_s = serializers.IntegerField(source="pool.start_p50_s", allow_null=True)
    start_p90_s = serializers.IntegerField(source="pool.start_p90_s", allow_null=True)


class NodeShapeIn(StrictSerializer):
    model = Text(max_length=80, help_text="As nodes name it, and flavors: H100-80GB-HBM3.")
    gpus = serializers.IntegerField()
    cpu_milli = serializers.IntegerField(help_text="Allocatable, in thousandths of a core.")
    memory_mib = serializers.IntegerField(help_text="Allocatable.")


class NodePoolsApi(ApiView):
    @operation(
        "clusters_node_pools",
        tag="clusters",
        summary="Capacity that can come: the pools of a cluster that make nodes",
        answers={200: NodePoolOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        found = selectors.coming_nodes(cluster_id=selectors.cluster(id=id).id)
        return Response(NodePoolOut(found, many=True).data)


class AskingIn(StrictSerializer):
    ask = serializers.BooleanField()


class AskingApi(ApiView):
    @operation(
        "clusters_ask_for_nodes",
        tag="clusters",
        summary="Ask a cluster for nodes that work waits for, or no more (fleet operators)",
        takes=AskingIn,
        answers={200: ClusterOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            clusters.ask_for_nodes(
                cluster=selectors.cluster(id=id),
                ask=self.body(AskingIn)["ask"],
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return ClusterOut(selectors.counted_cluster(id=id)).data

        return self.once(make, status=200)


class NodeApi(ApiView):
    @operation(
        "node_pools_describe_node",
        tag="clusters",
        summary="Say what a node of a pool has, until it has had one (fleet operators)",
        takes=NodeShapeIn,
        answers={200: NodePoolOut},
        problems=(404, 409),
        keyed=True,
    )
    def put(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            pool: NodePool = autoscaling.describe_node(
                id=id,
                node=autoscaling.Described(**self.body(NodeShapeIn)),
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return NodePoolOut(selectors.coming_of(pool=pool)).data

        return self.once(make, status=200)
