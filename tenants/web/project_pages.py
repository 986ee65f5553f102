"""One project's page: the state of its queue, its caps, weight, least run time, idle limit,
isolation, preferred flavors and gates, with what changes them."""

from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.models import Isolation
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import focus_fault, go, page
from controlplane.kernel.queue_forms import MOVED, QueueForm
from controlplane.kernel.queues import QueueState
from scheduler.selectors import queues as selectors
from tenants import access
from tenants.access import Action
from tenants.models import Project
from tenants.selectors import idle_limits as limits_in_force
from tenants.selectors import people
from tenants.selectors import preferred as preferring
from tenants.selectors.gates import of_project
from tenants.selectors.queues import closed_tenants
from tenants.selectors.run_times import inherited
from tenants.services import gates, idle_limits, isolation, preferred, queues, run_times, weights
from tenants.web.gate_forms import StandingGateForm
from tenants.web.preferred_forms import PreferredForm
from tenants.web.queue_forms import (
    CapsForm,
    IdleLimitForm,
    LeastIsolationForm,
    MinRunTimeForm,
    WeightForm,
)


@page("GET", "HEAD")
def project_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """Its queue and caps; forms for those who may change them."""
    project = people.project(actor=actor_of(request), id=id)
    return _page(request, project)


@page("POST")
def project_queue(request: HttpRequest, id: UUID) -> HttpResponse:
    """Hold, drain or open it. What is wrong, or was done meanwhile, is told on the page."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    form = QueueForm(request.POST, request.FILES)
    status = 422
    if form.is_valid():
        state = QueueState(form.cleaned_data["state"])
        note = form.cleaned_data["note"]
        try:
            queues.move(actor=actor, of=project, state=state, note=note, at=clock.now())
        except Invalid as error:
            form.show(error.problems)
        except Conflict as error:
            form.add_error(None, error.message)
            project, status = people.project(actor=actor, id=id), 409
        else:
            messages.success(request, MOVED[state].format(project.name))
            return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, queue_form=form, status=status)


@page("POST")
def project_caps(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set its caps; 422 with the form when there can't be such."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    form = CapsForm(request.POST, request.FILES)
    if form.is_valid():
        queues.set_caps(actor=actor, project=project, caps=form.caps, at=clock.now())
        messages.success(request, f"The caps of {project.name} hold from the next cycle on.")
        return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, caps_form=form, status=422)


@page("POST")
def project_weight(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set its part in fair share; 422 with the form for no such weight."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    form = WeightForm(request.POST, request.FILES)
    if form.is_valid():
        weight = form.cleaned_data["weight"]
        weights.set_for_project(actor=actor, project=project, weight=weight, at=clock.now())
        messages.success(request, f"The weight of {project.name} holds from the next cycle on.")
        return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, weight_form=form, status=422)


@page("POST")
def project_min_run_time(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how long its work runs before it may be evicted; 422 with the form for no such time."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    form = MinRunTimeForm(request.POST, request.FILES)
    if form.is_valid():
        seconds = form.cleaned_data["min_run_time_s"]
        run_times.set_for_project(actor=actor, project=project, seconds=seconds, at=clock.now())
        messages.success(request, f"The least run time of {project.name} holds from now on.")
        return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, run_time_form=form, status=422)


@page("POST")
def project_idle_limit(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how long its work may be idle before it is freed; 422 with the form for no such."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    form = IdleLimitForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            idle_limits.set_for_project(
                actor=actor, project=project, limit=form.limit, at=clock.now()
            )
        except Invalid as error:
            form.show(error.problems)
        else:
            messages.success(request, f"The idle limit of {project.name} holds from now on.")
            return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, idle_form=form, status=422)


@page("POST")
def project_isolation(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how far its work has to be kept from neighbours; 422 with the form for no such."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    form = LeastIsolationForm(request.POST, request.FILES)
    if form.is_valid():
        least = Isolation(form.cleaned_data["least_isolation"])
        isolation.set_for_project(actor=actor, project=project, least=least, at=clock.now())
        messages.success(request, f"What starts of {project.name} from now on is isolated so.")
        return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, isolation_form=form, status=422)


@page("POST")
def project_preferred(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set which flavors its work tries first; 422 with the form for no such order."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.MANAGE_QUEUE, project=project)
    names = [flavor.name for flavor in preferring.choices()]
    form = PreferredForm(request.POST, request.FILES, names=names)
    if form.is_valid():
        try:
            preferred.set_for_project(
                actor=actor, project=project, names=form.preferred, at=clock.now()
            )
        except Invalid as error:
            form.show(error.problems)
        else:
            messages.success(request, f"What {project.name} prefers holds for what waits, too.")
            return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, preferred_form=form, status=422)


@page("POST")
def project_gate_add(request: HttpRequest, id: UUID) -> HttpResponse:
    """Put a gate before all its work from now on; 422 with the form when there can't be such."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, Action.EDIT_QUOTA, project=project)
    form = StandingGateForm(request.POST, request.FILES)
    status = 422
    if form.is_valid():
        try:
            gates.add(actor=actor, project=project, gate=form.gate, at=clock.now())
        except Invalid as error:
            form.show(error.problems)
        except Conflict as error:
            form.add_error("name", error.message)
            status = 409
        else:
            name = form.gate.name
            messages.success(request, f"What is submitted from now on gets the gate {name}.")
            return go(request, reverse("project-detail", args=[project.id]))
    focus_fault(form)
    return _page(request, project, gate_form=form, status=status)


@page("POST")
def project_gate_remove(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    no_fields(request)
    gates.remove(actor=actor, project=project, name=name, at=clock.now())
    messages.success(request, f"What is submitted from now on goes without the gate {name}.")
    return go(request, reverse("project-detail", args=[project.id]))


def _page(
    request: HttpRequest,
    project: Project,
    *,
    queue_form: QueueForm | None = None,
    caps_form: CapsForm | None = None,
    weight_form: WeightForm | None = None,
    run_time_form: MinRunTimeForm | None = None,
    idle_form: IdleLimitForm | None = None,
    gate_form: StandingGateForm | None = None,
    isolation_form: LeastIsolationForm | None = None,
    preferred_form: PreferredForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """With what was posted of one of its forms; the others are as things are now."""
    now = {"min_run_time_s": project.min_run_time_s}
    idle_now = {name: getattr(project, name) for name in IdleLimitForm.base_fields}
    above = limits_in_force.inherited(project=project)
    first = [flavor.name for flavor in preferring.of_project(project)]
    may_manage = access.allowed(actor_of(request), Action.MANAGE_QUEUE, project=project)
    choices = [flavor.name for flavor in preferring.choices()] if may_manage else []
    context = {
        "project": project,
        "under_way": selectors.under_way(Q(project=project)),
        "closed_tenants": closed_tenants().get(project.tenant_id, ()),
        "may_manage": may_manage,
        "may_manage_tenant": access.allowed_for_tenant(
            actor_of(request), Action.MANAGE_QUEUE, tenant=project.tenant
        ),
        "may_grant": access.allowed(actor_of(request), Action.EDIT_QUOTA, project=project),
        "inherited": inherited(project=project),
        "queue_form": queue_form or QueueForm(),
        "caps_form": caps_form or CapsForm.of(project),
        "may_weigh_tenant": actor_of(request).permits_everywhere(Action.EDIT_QUOTA),
        "weight_form": weight_form or WeightForm(initial={"weight": project.weight}),
        "run_time_form": run_time_form or MinRunTimeForm(initial=now),
        "idle_limit": limits_in_force.own(project) or above.limit,
        "idle_limit_by": "" if limits_in_force.own(project) else above.by or "the fleet",
        "gates": of_project(project).order_by("id"),
        "gate_form": gate_form or StandingGateForm(),
        "isolation_form": isolation_form
        or LeastIsolationForm(initial={"least_isolation": project.least_isolation}),
        "preferred": first,
        "preferred_form": preferred_form or PreferredForm(names=choices, preferred=first),
        "idle_form": idle_form or IdleLimitForm(initial=idle_now),
    }
    return render(request, "tenants/project_detail.html", context, status=status)
