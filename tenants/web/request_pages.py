"""Asking for quota, and changing one's mind while nobody has answered; ending what was granted for
a time. The list of requests and the answer are the portal's."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters.models import Flavor
from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import go, later, page, partial, refusal
from controlplane.kernel.throttle import TooOften
from scheduler.core.reasons import in_units
from scheduler.selectors import capacity
from tenants import access
from tenants.access import Action
from tenants.models import Project, QuotaRequest
from tenants.selectors import people, tree
from tenants.selectors import requests as selectors
from tenants.services import asking, grants, quotas, requests
from tenants.services.asking import Line
from tenants.web.request_forms import AmendForm, RequestForm


@page("GET", "HEAD", "POST")
def request_new(request: HttpRequest) -> HttpResponse:
    """Ask for quota, of several flavors at once; 422 with the form when it can't be asked like
    that, 429 when it was asked for too often."""
    actor = actor_of(request)
    project = named_project(request)
    projects = people.projects_by_name(actor=actor, action=Action.REQUEST_QUOTA)
    flavors = list(Flavor.objects.order_by("name"))
    places = capacity.places(flavors=flavors)
    if request.method != "POST":
        start: dict[str, object] = {name: request.GET.get(name) for name in ("project", "flavor")}
        if len(projects) == 1:
            start["project"] = str(projects[0].id)
        form = RequestForm(projects=projects, flavors=flavors, places=places, initial=start)
        return _form_page(request, form, projects)
    form = RequestForm(
        request.POST, request.FILES, projects=projects, flavors=flavors, places=places
    )
    by_name = {flavor.name: flavor for flavor in flavors}

    def make() -> None:
        assert project is not None  # noqa: S101  # the form names one that is offered
        made = asking.open_all(
            actor=actor,
            project=project,
            lines=[Line(by_name[flavor], allotment) for flavor, allotment in form.asked],
            reason=form.cleaned_data["reason"],
            at=clock.now(),
        )
        asked = ", ".join(f"{in_units(one.nominal_milli)} {one.flavor.name}" for one in made)
        messages.success(request, f"Asked for {asked}.")

    try:
        status = refusal(form, make)
    except TooOften as error:
        form.add_error(None, error.message)
        return later(_form_page(request, form, projects, status=429), error)
    if status is None:
        return go(request, reverse("request-list"))
    return _form_page(request, form, projects, status=status)


@page("GET", "HEAD", "POST")
def request_amend(request: HttpRequest, id: UUID) -> HttpResponse:
    """Ask for something else; 422 with the form when it can't be asked like that, 409 when it was
    decided or changed meanwhile. Raises NotAllowed for who did not ask."""
    actor = actor_of(request)
    asked = _asked(request, id)
    requests.authorize_own(actor, asked)
    if request.method != "POST":
        return _form_page(request, AmendForm(request=asked), [asked.project], amended=asked)
    form = AmendForm(request.POST, request.FILES, request=asked)

    def amend() -> None:
        made = requests.amend(
            actor=actor,
            request=asked,
            allotment=form.allotment,
            reason=form.cleaned_data["reason"],
            version=form.cleaned_data["version"],
            at=clock.now(),
        )
        messages.success(request, f"Asked for {in_units(made.nominal_milli)} {made.flavor.name}.")

    status = refusal(form, amend)
    if status is None:
        return go(request, reverse("request-list"))
    return _form_page(request, form, [asked.project], amended=asked, status=status)


def _form_page(
    request: HttpRequest,
    form: RequestForm | AmendForm,
    projects: list[Project],
    *,
    amended: QuotaRequest | None = None,
    status: int = 200,
) -> HttpResponse:
    held = tree.by_project(projects)
    context = {
        "form": form,
        "amended": amended,
        "projects": [(project, held.get(project.id, ())) for project in projects],
    }
    return partial(request, "tenants/request_new.html", "form", context, status=status)


@page("POST")
def request_withdraw(request: HttpRequest, id: UUID) -> HttpResponse:
    """Ask no longer. What was decided meanwhile is told."""
    no_fields(request)
    asked = _asked(request, id)
    try:
        requests.withdraw(actor=actor_of(request), request=asked, at=clock.now())
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"The request for {asked.flavor.name} is withdrawn.")
    return go(request, reverse("request-list"))


@page("POST")
def grant_end(request: HttpRequest, id: UUID) -> HttpResponse:
    """End what came of that request now. What is over already is told."""
    no_fields(request)
    actor = actor_of(request)
    grant = selectors.grant(actor=actor, request_id=id)
    of = grant.request
    try:
        grants.end(actor=actor, grant=grant, at=clock.now())
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        quota = quotas.of(owner=of.project, flavor=of.flavor)
        back_at = quota.enforce_at if quota is not None else None
        goes = f"is taken back from {back_at:%F %R} UTC on" if back_at else "ends by itself"
        told = f"{of.project.name}'s grant of {of.flavor.name} has ended. What runs beyond the"
        messages.success(request, f"{told} quota {goes}.")
    return go(request, reverse("request-list"))


def _asked(request: HttpRequest, id: UUID) -> QuotaRequest:
    rows = QuotaRequest.objects.select_related("project__tenant", "flavor")
    return access.get_or_404(rows, actor=actor_of(request), id=id)
