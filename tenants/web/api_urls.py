"""Paths of the tenants' endpoints, below /api/v1/."""

from django.urls import path

from tenants.web import (
    answer_api,
    api,
    approval_api,
    audit_api,
    budget_api,
    channel_api,
    delegation_api,
    group_role_api,
    idle_limit_api,
    isolation_api,
    lowering_api,
    place_api,
    policy_api,
    preferred_api,
    queue_api,
    quota_api,
    replay_api,
    request_api,
    reservation_api,
    run_time_api,
    tenant_quotas,
    weight_api,
)

urlpatterns = [
    path("channels", channel_api.FleetChannelsApi.as_view(), name="channels"),
    path("channels/<uuid:id>", channel_api.ChannelApi.as_view(), name="channel"),
    path("channels/<uuid:id>/test", channel_api.ChannelTestApi.as_view(), name="channel-test"),
    path(
        "tenants/<uuid:id>/channels",
        channel_api.TenantChannelsApi.as_view(),
        name="tenant-channels",
    ),
    path(
        "projects/<uuid:id>/channels",
        channel_api.ProjectChannelsApi.as_view(),
        name="project-channels",
    ),
    path("me", api.MeApi.as_view(), name="me"),
    path("tenants", api.TenantsApi.as_view(), name="tenants"),
    path("tenants/<uuid:id>", api.TenantApi.as_view(), name="tenant"),
    path("tenants/<uuid:id>/name", place_api.TenantNameApi.as_view(), name="tenant-name"),
    path("tenants/<uuid:id>/parent", place_api.TenantParentApi.as_view(), name="tenant-parent"),
    path("tenants/<uuid:id>/queue", queue_api.TenantQueueApi.as_view(), name="tenant-queue"),
    path("replays", replay_api.ReplaysApi.as_view(), name="replays"),
    path("tenants/<uuid:id>/weight", weight_api.TenantWeightApi.as_view(), name="tenant-weight"),
    path(
        "tenants/<uuid:id>/min-run-time",
        run_time_api.TenantRunTimeApi.as_view(),
        name="tenant-min-run-time",
    ),
    path(
        "tenants/<uuid:id>/idle-limit",
        idle_limit_api.TenantIdleLimitApi.as_view(),
        name="tenant-idle-limit",
    ),
    path("projects", api.ProjectsApi.as_view(), name="projects"),
    path("projects/<uuid:id>", api.ProjectApi.as_view(), name="project"),
    path("projects/<uuid:id>/name", place_api.ProjectNameApi.as_view(), name="project-name"),
    path("projects/<uuid:id>/tenant", place_api.ProjectTenantApi.as_view(), name="project-tenant"),
    path("projects/<uuid:id>/queue", queue_api.QueueStateApi.as_view(), name="project-queue"),
    path("projects/<uuid:id>/caps", queue_api.CapsApi.as_view(), name="project-caps"),
    path(
        "projects/<uuid:id>/weight", weight_api.ProjectWeightApi.as_view(), name="project-weight"
    ),
    path(
        "projects/<uuid:id>/min-run-time",
        run_time_api.ProjectRunTimeApi.as_view(),
        name="project-min-run-time",
    ),
    path(
        "projects/<uuid:id>/idle-limit",
        idle_limit_api.ProjectIdleLimitApi.as_view(),
        name="project-idle-limit",
    ),
    path(
        "projects/<uuid:id>/least-isolation",
        isolation_api.ProjectIsolationApi.as_view(),
        name="project-least-isolation",
    ),
    path(
        "projects/<uuid:id>/preferred-flavors",
        preferred_api.ProjectPreferredApi.as_view(),
        name="project-preferred-flavors",
    ),
    path("policy", policy_api.FleetPolicyApi.as_view(), name="policy"),
    path("tenants/<uuid:id>/policy", policy_api.TenantPolicyApi.as_view(), name="tenant-policy"),
    path(
        "projects/<uuid:id>/policy", policy_api.ProjectPolicyApi.as_view(), name="project-policy"
    ),
    path("policies/dry-run", policy_api.PolicyDryRunApi.as_view(), name="policies-dry-run"),
    path("reservations", reservation_api.ReservationsApi.as_view(), name="reservations"),
    path("reservations/<uuid:id>", reservation_api.ReservationApi.as_view(), name="reservation"),
    path("group-roles", group_role_api.GroupRolesApi.as_view(), name="group-roles"),
    path("group-roles/<uuid:id>", group_role_api.GroupRoleApi.as_view(), name="group-role"),
    path("members", api.MembersApi.as_view(), name="members"),
    path("members/<uuid:id>", api.MemberApi.as_view(), name="member"),
    path("tokens", api.TokensApi.as_view(), name="tokens"),
    path("tokens/<uuid:id>", api.TokenApi.as_view(), name="token"),
    path("quotas/dry-run", lowering_api.QuotaDryRunApi.as_view(), name="quotas-dry-run"),
    path(
        "tenant-quotas/dry-run",
        lowering_api.TenantQuotaDryRunApi.as_view(),
        name="tenant-quotas-dry-run",
    ),
    path("quotas", quota_api.QuotasApi.as_view(), name="quotas"),
    path("budgets", budget_api.BudgetsApi.as_view(), name="budgets"),
    path("budgets/dry-run", budget_api.BudgetDryRunApi.as_view(), name="budgets-dry-run"),
    path("budgets/<uuid:id>", budget_api.BudgetApi.as_view(), name="budget"),
    path("tenant-quotas", tenant_quotas.TenantQuotasApi.as_view(), name="tenant-quotas"),
    path("approval-rules", approval_api.ApprovalRulesApi.as_view(), name="approval-rules"),
    path("approval-rules/<uuid:id>", approval_api.ApprovalRuleApi.as_view(), name="approval-rule"),
    path("delegations", delegation_api.DelegationsApi.as_view(), name="delegations"),
    path(
        "delegations/<uuid:id>/withdraw",
        delegation_api.WithdrawDelegationApi.as_view(),
        name="delegation-withdraw",
    ),
    path("quota-requests", request_api.QuotaRequestsApi.as_view(), name="quota-requests"),
    path("quota-requests/decide", answer_api.DecideApi.as_view(), name="quota-requests-decide"),
    path("quota-requests/<uuid:id>", request_api.QuotaRequestApi.as_view(), name="quota-request"),
    path(
        "quota-requests/<uuid:id>/amend",
        request_api.AmendApi.as_view(),
        name="quota-request-amend",
    ),
    path(
        "quota-requests/<uuid:id>/withdraw",
        request_api.WithdrawApi.as_view(),
        name="quota-request-withdraw",
    ),
    path(
        "quota-requests/<uuid:id>/end", request_api.EndGrantApi.as_view(), name="quota-request-end"
    ),
    path(
        "quota-requests/<uuid:id>/grant",
        request_api.GrantApi.as_view(),
        name="quota-request-grant",
    ),
    path(
        "quota-requests/<uuid:id>/deny", request_api.DenyApi.as_view(), name="quota-request-deny"
    ),
    path("audit-events", audit_api.AuditEventsApi.as_view(), name="audit-events"),
    path("audit-events.csv", audit_api.AuditCsvApi.as_view(), name="audit-events-csv"),
    path("audit-events.json", audit_api.AuditJsonApi.as_view(), name="audit-events-json"),
    path("rates", quota_api.RatesApi.as_view(), name="rates"),
    path("usage", quota_api.UsageApi.as_view(), name="usage"),
    path("charges", quota_api.ChargesApi.as_view(), name="charges"),
]
