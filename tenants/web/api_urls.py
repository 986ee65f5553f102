"""Paths of the tenants' endpoints, below /api/v1/."""

from django.urls import path

from tenants.web import api, quota_api

urlpatterns = [
    path("me", api.MeApi.as_view(), name="me"),
    path("tenants", api.TenantsApi.as_view(), name="tenants"),
    path("tenants/<uuid:id>", api.TenantApi.as_view(), name="tenant"),
    path("projects", api.ProjectsApi.as_view(), name="projects"),
    path("projects/<uuid:id>", api.ProjectApi.as_view(), name="project"),
    path("members", api.MembersApi.as_view(), name="members"),
    path("members/<uuid:id>", api.MemberApi.as_view(), name="member"),
    path("tokens", api.TokensApi.as_view(), name="tokens"),
    path("tokens/<uuid:id>", api.TokenApi.as_view(), name="token"),
    path("quotas", quota_api.QuotasApi.as_view(), name="quotas"),
    path("quota-requests", quota_api.QuotaRequestsApi.as_view(), name="quota-requests"),
    path("quota-requests/<uuid:id>", quota_api.QuotaRequestApi.as_view(), name="quota-request"),
    path(
        "quota-requests/<uuid:id>/grant", quota_api.GrantApi.as_view(), name="quota-request-grant"
    ),
    path("quota-requests/<uuid:id>/deny", quota_api.DenyApi.as_view(), name="quota-request-deny"),
    path("rates", quota_api.RatesApi.as_view(), name="rates"),
    path("usage", quota_api.UsageApi.as_view(), name="usage"),
    path("charges", quota_api.ChargesApi.as_view(), name="charges"),
]
