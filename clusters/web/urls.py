"""Addresses of the clusters' pages."""

from django.urls import path

from clusters.web import layout_pages, pages, queue_pages

urlpatterns = [
    path("layouts", layout_pages.layout_list, name="layout-list"),
    path("clusters", pages.cluster_list, name="cluster-list"),
    path("clusters/<slug:name>", pages.cluster_detail, name="cluster-detail"),
    path("clusters/<slug:name>/queues", queue_pages.cluster_queues, name="cluster-queues-page"),
]
