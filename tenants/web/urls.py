"""Addresses of the tenants' pages."""

from django.urls import path

from tenants.web import (
    approval_pages,
    audit_pages,
    budget_pages,
    lowering_pages,
    pages,
    place_pages,
    policy_pages,
    project_pages,
    request_pages,
    reservation_pages,
    tenant_pages,
    token_pages,
    weight_pages,
)

urlpatterns = [
    path("quota", pages.quota_list, name="quota-list"),
    path(
        "projects/<uuid:id>/quotas/<str:flavor>",
        lowering_pages.project_quota,
        name="project-quota",
    ),
    path(
        "tenants/<uuid:id>/quotas/<str:flavor>", lowering_pages.tenant_quota, name="tenant-quota"
    ),
    path("tenants", place_pages.tenant_list, name="tenant-list"),
    path("tenants/<uuid:id>", place_pages.tenant_detail, name="tenant-detail"),
    path("tenants/<uuid:id>/name", place_pages.tenant_rename, name="tenant-rename"),
    path("tenants/<uuid:id>/parent", place_pages.tenant_move, name="tenant-move"),
    path("tenants/<uuid:id>/projects", place_pages.project_new, name="project-new"),
    path("tenants/<uuid:id>/members", place_pages.tenant_member, name="tenant-member"),
    path("projects/<uuid:id>/people", place_pages.project_people, name="project-people"),
    path("projects/<uuid:id>/name", place_pages.project_rename, name="project-rename"),
    path("projects/<uuid:id>/tenant", place_pages.project_move, name="project-move"),
    path("projects/<uuid:id>/members", place_pages.project_member, name="project-member"),
    path("members/<uuid:id>/revoke", place_pages.member_revoke, name="member-revoke"),
    path("projects/<uuid:id>", project_pages.project_detail, name="project-detail"),
    path("projects/<uuid:id>/queue", project_pages.project_queue, name="project-queue"),
    path("projects/<uuid:id>/caps", project_pages.project_caps, name="project-caps"),
    path("projects/<uuid:id>/weight", project_pages.project_weight, name="project-weight-set"),
    path("tenants/<uuid:id>/queue", tenant_pages.tenant_queue, name="tenant-queue-page"),
    path("tenants/<uuid:id>/weight", weight_pages.tenant_weight, name="tenant-weight-set"),
    path(
        "projects/<uuid:id>/min-run-time",
        project_pages.project_min_run_time,
        name="project-min-run-time-set",
    ),
    path("budgets", budget_pages.budget_list, name="budget-list"),
    path("budgets/<uuid:id>", budget_pages.budget_detail, name="budget-detail"),
    path("budgets/<uuid:id>/remove", budget_pages.budget_remove, name="budget-remove"),
    path(
        "projects/<uuid:id>/idle-limit",
        project_pages.project_idle_limit,
        name="project-idle-limit-set",
    ),
    path(
        "projects/<uuid:id>/least-isolation",
        project_pages.project_isolation,
        name="project-least-isolation-set",
    ),
    path(
        "projects/<uuid:id>/preferred-flavors",
        project_pages.project_preferred,
        name="project-preferred-flavors-set",
    ),
    path("projects/<uuid:id>/gates", project_pages.project_gate_add, name="project-gate-add"),
    path(
        "projects/<uuid:id>/gates/<slug:name>/remove",
        project_pages.project_gate_remove,
        name="project-gate-remove",
    ),
    path("policy", policy_pages.fleet_policy, name="policy"),
    path("tenants/<uuid:id>/policy", policy_pages.tenant_policy, name="tenant-policy"),
    path("projects/<uuid:id>/policy", policy_pages.project_policy, name="project-policy"),
    path("reservations", reservation_pages.reservation_list, name="reservation-list"),
    path(
        "reservations/<uuid:id>/cancel",
        reservation_pages.reservation_cancel,
        name="reservation-cancel",
    ),
    path("requests/new", request_pages.request_new, name="request-new"),
    path("requests/<uuid:id>/amend", request_pages.request_amend, name="request-amend"),
    path("requests/<uuid:id>/withdraw", request_pages.request_withdraw, name="request-withdraw"),
    path("requests/<uuid:id>/end", request_pages.grant_end, name="grant-end"),
    path("approval-rules", approval_pages.approval_rule_list, name="approval-rule-list"),
    path(
        "approval-rules/<uuid:id>/remove",
        approval_pages.approval_rule_remove,
        name="approval-rule-remove",
    ),
    path("audit", audit_pages.audit_list, name="audit-list"),
    path("tokens", token_pages.token_list, name="token-list"),
    path("tokens/<uuid:id>/revoke", token_pages.token_revoke, name="token-revoke"),
]
