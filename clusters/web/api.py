"""Endpoints about hardware: clusters, nodes, devices, flavors. Everybody reads, operators add."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors
from clusters.models import FlavorKind, Isolation, Placing
from clusters.origin import CapacityType
from clusters.services import clusters, credentials, flavors, queues
from clusters.web import serializers as s
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many
from controlplane.kernel.queues import QueueState
from tenants import access
from tenants.access import Action

type Out = dict[str, Any]  # Any: JSON values


class ClustersApi(ApiView):
    pagination_class = Keyset

    @operation(
        "clusters_list",
        tag="clusters",
        summary="Every cluster",
        answers={200: s.ClusterOut(many=True)},
    )
    def get(self, request: Request) -> Response:
        self.query()
        return self.page(
            selectors.clusters(),
            order=["id"],
            shape=many(s.ClusterOut),
        )

    @operation(
        "clusters_register",
        tag="clusters",
        summary="Register a cluster, whose credential comes next (fleet operators)",
        takes=s.ClusterIn,
        answers={201: s.ClusterOut},
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(s.ClusterIn)
            made = clusters.register(
                name=body["name"],
                region=body["region"],
                server=body["server"],
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return s.ClusterOut(selectors.counted_cluster(id=made.id)).data

        return self.once(make)


class ClusterApi(ApiView):
    @operation(
        "clusters_get",
        tag="clusters",
        summary="One cluster",
        answers={200: s.ClusterOut},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        return Response(s.ClusterOut(selectors.counted_cluster(id=id)).data)


class CredentialApi(ApiView):
    @operation(
        "clusters_store_credential",
        tag="clusters",
        summary="Store how a cluster is reached, or replace it (fleet operators)",
        takes=s.CredentialIn,
        answers={200: s.CredentialOut},
        problems=(404,),
        keyed=True,
    )
    def put(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(s.CredentialIn)
            cluster = selectors.cluster(id=id)
            stored = credentials.store(
                cluster=cluster,
                credential=credentials.read(body),
                says_metrics="metrics" in body,
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return s.CredentialOut(stored).data

        return self.once(make, status=200)


class QueuesApi(ApiView):
    @operation(
        "clusters_queues",
        tag="clusters",
        summary="Whether new work starts in a cluster, and in each of its pools",
        answers={200: s.HardwareQueueOut(many=True)},
        problems=(404,),
    )
    def get(self, request: Request, id: UUID) -> Response:
        self.query()
        found = selectors.queues(cluster=selectors.cluster(id=id))
        return Response(s.HardwareQueueOut(found, many=True).data)

    @operation(
        "clusters_move_queue",
        tag="clusters",
        summary="Hold, drain or open a cluster, or one of its pools (fleet operators)",
        takes=s.HardwareQueueIn,
        answers={200: s.HardwareQueueOut},
        problems=(404, 409),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(s.HardwareQueueIn)
            moved = queues.move(
                cluster=selectors.cluster(id=id),
                model=body["model"],
                state=QueueState(body["state"]),
                note=body["note"],
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return s.HardwareQueueOut(moved).data

        return self.once(make, status=200)


class NodesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "nodes_list",
        tag="clusters",
        summary="Nodes that are there",
        answers={200: s.NodeOut(many=True)},
        query=s.NodesQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.NodesQuery)
        return self.page(
            selectors.nodes(cluster=asked.get("cluster"), name=asked.get("name")),
            order=["id"],
            shape=many(s.NodeOut),
        )


class DevicesApi(ApiView):
    pagination_class = Keyset

    @operation(
        "devices_list",
        tag="clusters",
        summary="GPUs that are there, with their MIG slices",
        answers={200: s.DeviceOut(many=True)},
        query=s.DevicesQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.DevicesQuery)
        return self.page(
            selectors.devices(
                cluster=asked.get("cluster"),
                node_id=asked.get("node"),
                model=asked.get("model"),
            ),
            order=["id"],
            shape=many(s.DeviceOut),
        )


class FlavorsApi(ApiView):
    pagination_class = Keyset

    @operation(
        "flavors_list",
        tag="clusters",
        summary="Flavors: what quota and prices are written in",
        answers={200: s.FlavorOut(many=True)},
        query=s.FlavorsQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(s.FlavorsQuery)
        return self.page(
            selectors.flavors(kind=asked.get("kind")),
            order=["id"],
            shape=many(s.FlavorOut),
        )

    @operation(
        "flavors_create",
        tag="clusters",
        summary="Make a flavor (fleet operators)",
        takes=s.FlavorIn,
        answers={201: s.FlavorOut},
        keyed=True,
    )
    def post(self, request: Request) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            body = self.body(s.FlavorIn)
            isolation = body.get("isolation")
            made = flavors.create(
                name=body["name"],
                meaning=flavors.Meaning(
                    kind=FlavorKind(body["kind"]),
                    model=body["model"],
                    capacity=CapacityType(body["capacity"]),
                    profile=body["profile"],
                    isolation=Isolation(isolation) if isolation is not None else None,
                    memory_mib=body["memory_mib"],
                    placing=Placing(body["placing"]),
                ),
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return s.FlavorOut(made).data

        return self.once(make)


class PlacingApi(ApiView):
    @operation(
        "flavors_place",
        tag="clusters",
        summary="Pack or spread a flavor's pods from now on (fleet operators)",
        takes=s.PlacingIn,
        answers={200: s.FlavorOut},
        problems=(404,),
        keyed=True,
    )
    def post(self, request: Request, id: UUID) -> Response:
        def make() -> Out:
            access.authorize_fleet(self.actor, Action.OPERATE)
            made = flavors.place(
                id=id,
                placing=Placing(self.body(s.PlacingIn)["placing"]),
                actor=self.actor.label,
                actor_name=self.actor.name,
                at=self.at,
            )
            return s.FlavorOut(made).data

        return self.once(make, status=200)
