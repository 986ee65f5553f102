"""The queue page: who waits, in which order, why, and until when probably."""

from django.http import HttpRequest, HttpResponse

from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.htmx import minute, page, partial, revision, unchanged
from scheduler.selectors import caught, lines
from scheduler.web.pages import may_submit
from tenants.selectors import people


@page("GET", "HEAD")
def queue(request: HttpRequest) -> HttpResponse:
    """Each project the actor sees with its pending work; others' work as one sum."""
    actor = actor_of(request)
    project = named_project(request)
    at = clock.now()
    shown = lines.queues(actor=actor, project=project.id if project else None, at=at)
    outside = caught.outside(actor=actor, project=project.id if project else None)
    rev = revision(shown, [(pod.id, pod.why) for pod in outside], minute(at))
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "queues": shown,
        "waiting": [queue for queue in shown.queues if queue.waiting.count],
        "quiet": [queue for queue in shown.queues if not queue.waiting.count],
        "outside": outside,
        "project": project,
        "projects": people.projects_by_name(actor=actor),
        "may_submit": may_submit(actor),
        "rev": rev,
    }
    return partial(request, "scheduler/queue.html", "queues", context)
