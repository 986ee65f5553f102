"""Addresses of the scheduler's pages."""

from django.urls import path

from scheduler.web import (
    array_pages,
    defragment_pages,
    explain_pages,
    gate_pages,
    inspection_pages,
    order_pages,
    pages,
    queue_pages,
    recut_pages,
    release_pages,
    submit_pages,
)

urlpatterns = [
    path("workloads", pages.workload_list, name="workload-list"),
    path("workloads/new", submit_pages.workload_submit, name="workload-submit"),
    path("workloads/new/check", submit_pages.workload_check, name="workload-check"),
    path("workloads/new/modes", submit_pages.workload_modes, name="workload-modes"),
    path("workloads/<uuid:id>", pages.workload_detail, name="workload-detail"),
    path("workloads/<uuid:id>/cancel", pages.workload_cancel, name="workload-cancel"),
    path("workloads/<uuid:id>/release", release_pages.workload_release, name="workload-release"),
    path("workloads/<uuid:id>/priority", order_pages.workload_order, name="workload-order"),
    path("arrays/<uuid:id>/priority", order_pages.array_order, name="array-order"),
    path(
        "workloads/<uuid:id>/gates/<slug:name>",
        gate_pages.workload_gate,
        name="workload-gate-decide",
    ),
    path("arrays/<uuid:id>/gates/<slug:name>", gate_pages.array_gate, name="array-gate-decide"),
    path(
        "workloads/<uuid:id>/explanation",
        explain_pages.workload_explanation,
        name="workload-explanation",
    ),
    path(
        "workloads/<uuid:id>/pods/<uuid:placement>",
        inspection_pages.pod_inspection,
        name="pod-inspection",
    ),
    path(
        "workloads/<uuid:id>/pods/<uuid:placement>/inspect",
        inspection_pages.pod_inspect,
        name="pod-inspect",
    ),
    path("arrays/<uuid:id>", array_pages.array_detail, name="array-detail"),
    path("arrays/<uuid:id>/cancel", array_pages.array_cancel, name="array-cancel"),
    path("arrays/<uuid:id>/release", release_pages.array_release, name="array-release"),
    path("queue", queue_pages.queue, name="queue"),
    path(
        "clusters/<slug:name>/defragmentation",
        defragment_pages.defragmentation,
        name="cluster-defragmentation-page",
    ),
    path(
        "clusters/<slug:name>/defragmentation/call-off",
        defragment_pages.defragmentation_call_off,
        name="cluster-defragmentation-call-off",
    ),
    path("clusters/<slug:name>/recuts", recut_pages.recut_list, name="cluster-recuts-page"),
    path(
        "clusters/<slug:name>/recuts/<uuid:id>/call-off",
        recut_pages.recut_call_off,
        name="cluster-recut-call-off",
    ),
]
