"""Addresses of the scheduler's pages."""

from django.urls import path

from scheduler.web import pages, queue_pages, submit_pages

urlpatterns = [
    path("workloads", pages.workload_list, name="workload-list"),
    path("workloads/new", submit_pages.workload_submit, name="workload-submit"),
    path("workloads/<uuid:id>", pages.workload_detail, name="workload-detail"),
    path("workloads/<uuid:id>/cancel", pages.workload_cancel, name="workload-cancel"),
    path("queue", queue_pages.queue, name="queue"),
]
