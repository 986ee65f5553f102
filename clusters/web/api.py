"""Endpoints about hardware, to read: clusters, nodes, devices, flavors."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from clusters import selectors
from clusters.web import serializers as s
from controlplane.api.pagination import Keyset
from controlplane.api.schema import operation
from controlplane.api.views import ApiView, many


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
        return Response(s.ClusterOut(selectors.cluster(id=id)).data)


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
