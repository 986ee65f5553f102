"""One project's page: the state of its queue, its caps, weight, least run time, idle limit,
isolation, preferred flavors and gates, with what changes them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from clusters.models import Isolation
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm, no_fields
from controlplane.kernel.htmx import go, page, refusal
from controlplane.kernel.queue_forms import MOVED, QueueForm
from scheduler.selectors import queues as selectors
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project
from tenants.selectors import idle_limits as limits_in_force
from tenants.selectors import people
from tenants.selectors import preferred as preferring
from tenants.selectors import reviews as of_reviews
from tenants.selectors import run_times as run_times_in_force
from tenants.selectors.gates import of_project
from tenants.selectors.queues import closed_tenants
from tenants.services import (
    gates,
    idle_limits,
    isolation,
    preferred,
    queues,
    reviews,
    run_times,
    weights,
)
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
    """Hold, drain or open it."""
    project = _of(request, id, Action.MANAGE_QUEUE)
    form = QueueForm(request.POST, request.FILES)

    def move(by: Actor, at: datetime) -> str:
        note = form.cleaned_data["note"]
        queues.move(actor=by, of=project, state=form.moved_to, note=note, at=at)
        return MOVED[form.moved_to].format(project.name)

    return _save(request, project, form, "queue_form", move)


@page("POST")
def project_confirm_quota(request: HttpRequest, id: UUID) -> HttpResponse:
    """Say that its quota is still wanted."""
    no_fields(request)
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    reviews.confirm(actor=actor, project=project, at=clock.now())
    messages.success(request, f"The quota of {project.name} is confirmed.")
    return go(request, reverse("project-detail", args=[id]))


@page("POST")
def project_caps(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set its caps."""
    project = _of(request, id, Action.MANAGE_QUEUE)
    form = CapsForm(request.POST, request.FILES)

    def save(by: Actor, at: datetime) -> str:
        queues.set_caps(actor=by, project=project, caps=form.caps, at=at)
        return f"The caps of {project.name} hold from the next cycle on."

    return _save(request, project, form, "caps_form", save)


@page("POST")
def project_weight(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set its part in fair share."""
    project = _of(request, id, Action.EDIT_QUOTA)
    form = WeightForm(request.POST, request.FILES)

    def save(by: Actor, at: datetime) -> str:
        weight = form.cleaned_data["weight"]
        weights.set_for_project(actor=by, project=project, weight=weight, at=at)
        return f"The weight of {project.name} holds from the next cycle on."

    return _save(request, project, form, "weight_form", save)


@page("POST")
def project_min_run_time(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how long its work runs before it may be evicted."""
    project = _of(request, id, Action.EDIT_QUOTA)
    form = MinRunTimeForm(request.POST, request.FILES)

    def save(by: Actor, at: datetime) -> str:
        seconds = form.cleaned_data["min_run_time_s"]
        run_times.set_for_project(actor=by, project=project, seconds=seconds, at=at)
        return f"The least run time of {project.name} holds from now on."

    return _save(request, project, form, "run_time_form", save)


@page("POST")
def project_idle_limit(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how long its work may be idle before it is freed."""
    project = _of(request, id, Action.EDIT_QUOTA)
    form = IdleLimitForm(request.POST, request.FILES)

    def save(by: Actor, at: datetime) -> str:
        idle_limits.set_for_project(actor=by, project=project, limit=form.limit, at=at)
        return f"The idle limit of {project.name} holds from now on."

    return _save(request, project, form, "idle_form", save)


@page("POST")
def project_isolation(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set how far its work has to be kept from neighbours."""
    project = _of(request, id, Action.MANAGE_QUEUE)
    form = LeastIsolationForm(request.POST, request.FILES)

    def save(by: Actor, at: datetime) -> str:
        least = Isolation(form.cleaned_data["least_isolation"])
        isolation.set_for_project(actor=by, project=project, least=least, at=at)
        return f"What starts of {project.name} from now on is isolated so."

    return _save(request, project, form, "isolation_form", save)


@page("POST")
def project_preferred(request: HttpRequest, id: UUID) -> HttpResponse:
    """Set which flavors its work tries first."""
    project = _of(request, id, Action.MANAGE_QUEUE)
    names = [flavor.name for flavor in preferring.choices()]
    form = PreferredForm(request.POST, request.FILES, names=names)

    def save(by: Actor, at: datetime) -> str:
        preferred.set_for_project(actor=by, project=project, names=form.preferred, at=at)
        return f"What {project.name} prefers holds for what waits, too."

    return _save(request, project, form, "preferred_form", save)


@page("POST")
def project_gate_add(request: HttpRequest, id: UUID) -> HttpResponse:
    """Put a gate before all its work from now on."""
    project = _of(request, id, Action.EDIT_QUOTA)
    form = StandingGateForm(request.POST, request.FILES)

    def add(by: Actor, at: datetime) -> str:
        gates.add(actor=by, project=project, gate=form.gate, at=at)
        return f"What is submitted from now on gets the gate {form.gate.name}."

    return _save(request, project, form, "gate_form", add, about="name")


@page("POST")
def project_gate_remove(request: HttpRequest, id: UUID, name: str) -> HttpResponse:
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    no_fields(request)
    gates.remove(actor=actor, project=project, name=name, at=clock.now())
    messages.success(request, f"What is submitted from now on goes without the gate {name}.")
    return go(request, reverse("project-detail", args=[project.id]))


def _of(request: HttpRequest, id: UUID, action: Action) -> Project:
    """The project, for who may do this to it."""
    actor = actor_of(request)
    project = people.project(actor=actor, id=id)
    access.authorize(actor, action, project=project)
    return project


def _save(
    request: HttpRequest,
    project: Project,
    form: StrictForm,
    name: str,
    save: Callable[[Actor, datetime], str],
    *,
    about: str | None = None,
) -> HttpResponse:
    """Back to the page with what `save` says was done; else the page with the form, as `name`."""
    actor = actor_of(request)
    status = refusal(
        form, lambda: messages.success(request, save(actor, clock.now())), about=about
    )
    if status is None:
        return go(request, reverse("project-detail", args=[project.id]))
    if status == 409:
        project = people.project(actor=actor, id=project.id)
    return _page(request, project, {name: form}, status=status)


def _page(
    request: HttpRequest,
    project: Project,
    posted: Mapping[str, StrictForm] = MappingProxyType({}),
    *,
    status: int = 200,
) -> HttpResponse:
    """With the form that was posted, by its name; the others are as things are now."""
    isolation_now = {"least_isolation": project.least_isolation}
    idle_now = {name: getattr(project, name) for name in IdleLimitForm.base_fields}
    first = [flavor.name for flavor in preferring.of_project(project)]
    may_manage = access.allowed(actor_of(request), Action.MANAGE_QUEUE, project=project)
    choices = [flavor.name for flavor in preferring.choices()] if may_manage else []
    may_manage_tenant = access.allowed_for_tenant(
        actor_of(request), Action.MANAGE_QUEUE, tenant=project.tenant
    )
    caps_form = posted.get("caps_form") or CapsForm.of(project)
    if isinstance(caps_form, CapsForm) and not may_manage_tenant:
        caps_form.keep(project.caps_from_above)
    context = {
        "project": project,
        "under_way": selectors.under_way(Q(project=project)),
        "closed_tenants": closed_tenants().get(project.tenant_id, ()),
        "review_due_at": of_reviews.due_at(project),
        "may_confirm": of_reviews.may_confirm(actor_of(request), project),
        "may_manage": may_manage,
        "may_manage_tenant": may_manage_tenant,
        "may_manage_channels": access.allowed_at(
            actor_of(request), Action.MANAGE_CHANNELS, place=project
        ),
        "may_grant": access.allowed(actor_of(request), Action.EDIT_QUOTA, project=project),
        "least_run_time": run_times_in_force.in_force(of=project),
        "queue_form": QueueForm(),
        "caps_form": caps_form,
        "may_weigh_tenant": actor_of(request).permits_everywhere(Action.EDIT_QUOTA),
        "weight_form": WeightForm(initial={"weight": project.weight}),
        "run_time_form": MinRunTimeForm(initial={"min_run_time_s": project.min_run_time_s}),
        "idle": limits_in_force.in_force(of=project),
        "gates": of_project(project).order_by("id"),
        "gate_form": StandingGateForm(),
        "isolation_form": LeastIsolationForm(initial=isolation_now),
        "preferred": first,
        "preferred_form": PreferredForm(names=choices, preferred=first),
        "idle_form": IdleLimitForm(initial=idle_now),
    }
    return render(request, "tenants/project_detail.html", {**context, **posted}, status=status)
