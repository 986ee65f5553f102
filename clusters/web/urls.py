"""Addresses of the clusters' pages."""

from django.urls import path

from clusters.web import pages

urlpatterns = [
    path("clusters", pages.cluster_list, name="cluster-list"),
    path("clusters/<slug:name>", pages.cluster_detail, name="cluster-detail"),
]
