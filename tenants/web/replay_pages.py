"""The last days played again with another weight, before it is set."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid
from controlplane.kernel.htmx import focus_fault, later, page, partial
from controlplane.kernel.throttle import TooOften
from scheduler.services import replays
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Tenant
from tenants.web import replayed
from tenants.web.queue_forms import WeightForm


@page("GET", "HEAD", "POST")
def project_replay(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    project = access.project_or_404(actor, id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    return _replay(request, actor, project)


@page("GET", "HEAD", "POST")
def tenant_replay(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    tenant = access.tenant_or_404(actor, id)
    access.authorize_fleet(actor, Action.EDIT_QUOTA)
    return _replay(request, actor, tenant)


def _replay(request: HttpRequest, actor: Actor, of: Project | Tenant) -> HttpResponse:
    """A POST plays; 422 with the form for no such weight, 429 for who asks too often."""
    if request.method != "POST":
        return _page(request, of, WeightForm(initial={"weight": of.weight}))
    form = WeightForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            found = replays.of_weight(
                actor=actor, of=of, weight=form.cleaned_data["weight"], at=clock.now()
            )
        except Invalid as error:
            form.show(error.problems)
        except TooOften as error:
            refused = {"refused": error.message}
            return later(_page(request, of, form, status=429, found=refused), error)
        else:
            return _page(request, of, form, found=replayed.shown(found))
    focus_fault(form)
    return _page(request, of, form, status=422)


def _page(
    request: HttpRequest,
    of: Project | Tenant,
    form: WeightForm,
    *,
    status: int = 200,
    found: Mapping[str, object] = MappingProxyType({}),
) -> HttpResponse:
    is_project = isinstance(of, Project)
    set_at = reverse("project-detail" if is_project else "tenant-weight-set", args=[of.id])
    context = {"of": of, "form": form, "set_at": set_at, **found}
    return partial(request, "tenants/replay.html", "replay", context, status=status)
