"""Paths of the tenants endpoints, below /api/v1/."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
