"""Paths of the scheduler's endpoints, below /api/v1/."""

from django.urls import path

from scheduler.web import (
    api,
    array_api,
    confinement_api,
    defragment_api,
    explain_api,
    gate_api,
    impact_api,
    inspection_api,
    losses_api,
    order_api,
    pool_api,
    recut_api,
)

urlpatterns = [
    path(
        "quota-requests/<uuid:id>/impact",
        impact_api.ImpactApi.as_view(),
        name="quota-request-impact",
    ),
    path("workloads", api.WorkloadsApi.as_view(), name="workloads"),
    path("workloads/batch", api.BatchApi.as_view(), name="workloads-batch"),
    path("workloads/dry-run", explain_api.DryRunApi.as_view(), name="workloads-dry-run"),
    path("workloads/modes", explain_api.ModesApi.as_view(), name="workloads-modes"),
    path("workloads/<uuid:id>", api.WorkloadApi.as_view(), name="workload"),
    path("workloads/<uuid:id>/cancel", api.CancelApi.as_view(), name="workload-cancel"),
    path("workloads/<uuid:id>/release", api.ReleaseApi.as_view(), name="workload-release"),
    path("workloads/<uuid:id>/priority", order_api.OrderApi.as_view(), name="workload-priority"),
    path(
        "workloads/<uuid:id>/checkpoint",
        api.CheckpointApi.as_view(),
        name="workload-checkpoint",
    ),
    path(
        "workloads/<uuid:id>/explanation",
        explain_api.ExplanationApi.as_view(),
        name="workload-explanation",
    ),
    path("workloads/<uuid:id>/events", api.EventsApi.as_view(), name="workload-events"),
    path(
        "workloads/<uuid:id>/placements/<uuid:placement>/inspection",
        inspection_api.InspectionApi.as_view(),
        name="workload-inspection",
    ),
    path("gates", gate_api.GatesApi.as_view(), name="gates"),
    path(
        "workloads/<uuid:id>/gates/<slug:name>",
        gate_api.WorkloadGateApi.as_view(),
        name="workload-gate",
    ),
    path("arrays/<uuid:id>/gates/<slug:name>", gate_api.ArrayGateApi.as_view(), name="array-gate"),
    path("projects/<uuid:id>/gates", gate_api.StandingGatesApi.as_view(), name="project-gates"),
    path(
        "projects/<uuid:id>/gates/<slug:name>",
        gate_api.StandingGateApi.as_view(),
        name="project-gate",
    ),
    path("arrays", array_api.ArraysApi.as_view(), name="arrays"),
    path("arrays/<uuid:id>", array_api.ArrayApi.as_view(), name="array"),
    path("arrays/<uuid:id>/cancel", array_api.ArrayCancelApi.as_view(), name="array-cancel"),
    path("arrays/<uuid:id>/release", array_api.ArrayReleaseApi.as_view(), name="array-release"),
    path("arrays/<uuid:id>/priority", order_api.ArrayOrderApi.as_view(), name="array-priority"),
    path("layouts/advice", pool_api.LayoutAdviceApi.as_view(), name="layout-advice"),
    path("pools/<uuid:id>/fit", pool_api.PoolFitApi.as_view(), name="pool-fit"),
    path(
        "clusters/<uuid:id>/projects",
        confinement_api.ConfinementsApi.as_view(),
        name="cluster-projects",
    ),
    path("clusters/<uuid:id>/drift", confinement_api.DriftApi.as_view(), name="cluster-drift"),
    path(
        "clusters/<uuid:id>/defragmentation",
        defragment_api.DefragmentationApi.as_view(),
        name="cluster-defragmentation",
    ),
    path("clusters/<uuid:id>/recuts", recut_api.RecutsApi.as_view(), name="cluster-recuts"),
    path(
        "clusters/<uuid:id>/recuts/preview",
        recut_api.RecutPreviewApi.as_view(),
        name="cluster-recut-preview",
    ),
    path(
        "clusters/<uuid:id>/recuts/proposals",
        recut_api.RecutProposalsApi.as_view(),
        name="cluster-recut-proposals",
    ),
    path(
        "clusters/<uuid:id>/recuts/<uuid:recut>",
        recut_api.RecutApi.as_view(),
        name="cluster-recut",
    ),
    path("losses", losses_api.LossesApi.as_view(), name="losses"),
    path("queues/<uuid:project_id>", api.QueueApi.as_view(), name="queue"),
]
