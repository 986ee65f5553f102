"""The queue page: who waits, in which order, why, and until when probably."""

from django.http import HttpRequest, HttpResponse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import id_in, minute, page, partial, revision, unchanged
from scheduler.selectors import lines
from scheduler.web.pages import may_submit
from tenants import access
from tenants.selectors import people


@page("GET", "HEAD")
def queue(request: HttpRequest) -> HttpResponse:
    """Each project the actor sees with its pending work; others' work as one sum."""
    actor = actor_of(request)
    project = id_in(request.GET, "project")
    if project is not None:
        access.project_or_404(actor, project)
    shown = lines.queues(actor=actor, project=project)
    rev = revision(shown, minute(clock.now()))
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "queues": shown,
        "waiting": [queue for queue in shown.queues if queue.waiting.count],
        "quiet": [queue for queue in shown.queues if not queue.waiting.count],
        "project": project,
        "projects": people.projects_by_name(actor=actor),
        "may_submit": may_submit(actor),
        "rev": rev,
    }
    return partial(request, "scheduler/queue.html", "queues", context)
