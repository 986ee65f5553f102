"""Addresses of the clusters' pages."""

from django.urls import path

from clusters.web import layout_pages, pages

urlpatterns = [
    path("layouts", layout_pages.layout_list, name="layout-list"),
    path("clusters", pages.cluster_list, name="cluster-list"),
    path("clusters/<slug:name>", pages.cluster_detail, name="cluster-detail"),
]
