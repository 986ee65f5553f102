"""Addresses of the clusters' pages."""

from django.urls import path

from clusters.web import (
    connection_pages,
    drift_pages,
    hook,
    layout_pages,
    node_pool_pages,
    pages,
    queue_pages,
)

urlpatterns = [
    path("admission/pods", hook.pod_admission, name="pod-admission"),
    path("layouts", layout_pages.layout_list, name="layout-list"),
    path("clusters", pages.cluster_list, name="cluster-list"),
    path("clusters/<slug:name>", pages.cluster_detail, name="cluster-detail"),
    path("register-cluster", connection_pages.cluster_register, name="cluster-register"),
    path(
        "clusters/<slug:name>/manifest",
        connection_pages.cluster_manifest,
        name="cluster-manifest-page",
    ),
    path(
        "clusters/<slug:name>/credential",
        connection_pages.cluster_credential,
        name="cluster-credential-page",
    ),
    path(
        "clusters/<slug:name>/connection",
        connection_pages.cluster_connection,
        name="cluster-connection",
    ),
    path("clusters/<slug:name>/probe", connection_pages.cluster_probe, name="cluster-probe-page"),
    path("clusters/<slug:name>/drift", drift_pages.cluster_drift, name="cluster-drift-page"),
    path(
        "clusters/<slug:name>/node-pools",
        node_pool_pages.cluster_node_pools,
        name="cluster-node-pools-page",
    ),
    path("clusters/<slug:name>/queues", queue_pages.cluster_queues, name="cluster-queues-page"),
]
