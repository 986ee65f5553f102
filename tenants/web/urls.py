"""Addresses of the tenants' pages."""

from django.urls import path

from tenants.web import pages

urlpatterns = [
    path("quota", pages.quota_list, name="quota-list"),
    path("requests/new", pages.request_new, name="request-new"),
]
