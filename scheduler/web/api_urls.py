"""Paths of the scheduler's endpoints, below /api/v1/."""

from django.urls import path

from scheduler.web import api

urlpatterns = [
    path("workloads", api.WorkloadsApi.as_view(), name="workloads"),
    path("workloads/batch", api.BatchApi.as_view(), name="workloads-batch"),
    path("workloads/<uuid:id>", api.WorkloadApi.as_view(), name="workload"),
    path("workloads/<uuid:id>/cancel", api.CancelApi.as_view(), name="workload-cancel"),
    path(
        "workloads/<uuid:id>/checkpoint",
        api.CheckpointApi.as_view(),
        name="workload-checkpoint",
    ),
    path("workloads/<uuid:id>/events", api.EventsApi.as_view(), name="workload-events"),
    path("queues/<uuid:project_id>", api.QueueApi.as_view(), name="queue"),
]
