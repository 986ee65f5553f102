"""Addresses of the tenants' pages."""

from django.urls import path

from tenants.web import pages, token_pages

urlpatterns = [
    path("quota", pages.quota_list, name="quota-list"),
    path("requests/new", pages.request_new, name="request-new"),
    path("tokens", token_pages.token_list, name="token-list"),
    path("tokens/<uuid:id>/revoke", token_pages.token_revoke, name="token-revoke"),
]
