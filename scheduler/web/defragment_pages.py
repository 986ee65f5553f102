"""The defragmentation of a cluster: what would move now, planning it, calling it off."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from clusters import selectors as clusters
from clusters.models import Cluster
from controlplane.api.auth import operator_of
from controlplane.kernel import clock
from controlplane.kernel.errors import AppError, Conflict
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import focus_fault, go, later, page
from controlplane.kernel.throttle import TooOften
from scheduler.services import asking, defragmentations
from scheduler.web.defragment_api import shown
from scheduler.web.defragment_forms import BudgetForm, DefragmentationForm
from tenants.access import Actor


@page("GET", "HEAD", "POST")
def defragmentation(request: HttpRequest, name: str) -> HttpResponse:
    """`?hours=` is the budget of what is shown. A POST plans; 422 with the form when it can't be
    so, 429 when what would move was asked for too often. Raises NotAllowed but for operators of
    the fleet."""
    actor = operator_of(request)
    cluster = clusters.cluster(name=name)
    if request.method != "POST":
        return _page(request, actor, cluster, DefragmentationForm())
    form = DefragmentationForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            defragmentations.plan(
                cluster=cluster,
                budget_s=form.budget_s,
                starts_at=form.cleaned_data["starts_at"],
                ends_at=form.cleaned_data["ends_at"],
                actor=actor.label,
                actor_name=actor.name,
                at=clock.now(),
            )
        except AppError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"A defragmentation of {cluster.name} is planned.")
            return go(request, reverse("cluster-defragmentation-page", args=[cluster.name]))
    focus_fault(form)
    return _page(request, actor, cluster, form, status=422)


@page("POST")
def defragmentation_call_off(request: HttpRequest, name: str) -> HttpResponse:
    """The one that is planned."""
    actor = operator_of(request)
    cluster = clusters.cluster(name=name)
    no_fields(request)
    try:
        defragmentations.call_off(
            cluster=cluster, actor=actor.label, actor_name=actor.name, at=clock.now()
        )
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"The defragmentation of {cluster.name} is called off.")
    return go(request, reverse("cluster-defragmentation-page", args=[cluster.name]))


def _page(
    request: HttpRequest,
    actor: Actor,
    cluster: Cluster,
    form: DefragmentationForm,
    *,
    status: int = 200,
) -> HttpResponse:
    asked = request.GET if "hours" in request.GET else QueryDict("hours=1")
    budget = BudgetForm(asked, auto_id="shown_%s")
    budget_s = budget.budget_s if budget.is_valid() else defragmentations.BUDGET_S
    context = {
        "cluster": cluster,
        "budget": budget,
        "form": form,
        "planned": defragmentations.planned(cluster=cluster),
    }
    at = clock.now()
    try:
        with asking.turn(actor=actor, at=at):
            made = defragmentations.preview(cluster=cluster, budget_s=budget_s, at=at)
    except TooOften as error:
        context["refusal"] = error.message
        answer = render(request, "scheduler/defragmentation.html", context, status=429)
        return later(answer, error)
    return render(request, "scheduler/defragmentation.html", context | shown(made), status=status)
