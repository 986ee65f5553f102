"""Paths of the clusters endpoints, below /api/v1/."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
