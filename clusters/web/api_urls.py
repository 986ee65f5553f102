"""Paths of the clusters' endpoints, below /api/v1/."""

from django.urls import path

from clusters.web import api, declared_pool_api, node_pool_api, probe_api

urlpatterns = [
    path("clusters", api.ClustersApi.as_view(), name="clusters"),
    path("clusters/<uuid:id>", api.ClusterApi.as_view(), name="cluster"),
    path("clusters/<uuid:id>/credential", api.CredentialApi.as_view(), name="cluster-credential"),
    path("clusters/<uuid:id>/probes", probe_api.ProbesApi.as_view(), name="cluster-probes"),
    path(
        "clusters/<uuid:id>/probes/<uuid:probe_id>",
        probe_api.ProbeApi.as_view(),
        name="cluster-probe",
    ),
    path("clusters/<uuid:id>/exposure", probe_api.ExposureApi.as_view(), name="cluster-exposure"),
    path("cluster-manifest", probe_api.ManifestApi.as_view(), name="cluster-manifest"),
    path("clusters/<uuid:id>/queues", api.QueuesApi.as_view(), name="cluster-queues"),
    path(
        "clusters/<uuid:id>/node-pools",
        declared_pool_api.DeclaringApi.as_view(),
        name="cluster-node-pools",
    ),
    path(
        "clusters/<uuid:id>/asking",
        node_pool_api.AskingApi.as_view(),
        name="cluster-asking",
    ),
    path("node-pools/<uuid:id>", declared_pool_api.DeclaredApi.as_view(), name="node-pool"),
    path("node-pools/<uuid:id>/node", node_pool_api.NodeApi.as_view(), name="node-pool-node"),
    path("nodes", api.NodesApi.as_view(), name="nodes"),
    path("devices", api.DevicesApi.as_view(), name="devices"),
    path("flavors", api.FlavorsApi.as_view(), name="flavors"),
    path("flavors/<uuid:id>/placing", api.PlacingApi.as_view(), name="flavor-placing"),
]
