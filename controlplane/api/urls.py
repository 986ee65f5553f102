"""Paths of the API about itself, below /api/v1/; controlplane.urls puts the apps' beside them."""

from django.urls import path

from controlplane.api.docs import ProblemView
from controlplane.api.schema import DocsView, SchemaView

urlpatterns = [
    path("schema", SchemaView.as_view(), name="schema"),
    path("docs", DocsView.as_view(), name="docs"),
    path("problems/<slug:code>", ProblemView.as_view(), name="problem"),
]
