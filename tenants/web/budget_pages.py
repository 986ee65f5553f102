"""Budgets: what projects and tenants may use in a period, what is used, and the form that sets
them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid, NotAllowed
from controlplane.kernel.htmx import focus_fault, go, page
from scheduler.selectors.budgets import standings
from tenants.access import Action, Actor
from tenants.models import Period, Project, Tenant
from tenants.selectors import budgets as selectors
from tenants.selectors import people
from tenants.services import budgets
from tenants.web.budget_forms import BudgetForm

SHOWN = 200
"""Budgets that the page lists, the oldest first."""


@page("GET", "HEAD", "POST")
def budget_list(request: HttpRequest) -> HttpResponse:
    """The list, and for those who may set quotas the form; 422 with that when there can't be such
    a budget. Raises NotAllowed for others who post."""
    actor = actor_of(request)
    owners = _owners(actor)
    if request.method != "POST":
        return _page(request, actor, BudgetForm(owners=owners))
    if not owners:
        raise NotAllowed("To set a budget takes a role that may set quotas.")
    form = BudgetForm(request.POST, request.FILES, owners=owners)
    if form.is_valid():
        of = form.owner
        try:
            budgets.set_budget(
                actor=actor,
                of=of,
                period=Period(form.cleaned_data["period"]),
                terms=form.terms,
                at=clock.now(),
            )
        except Invalid as error:
            form.add_error(error.pointer.removeprefix("/"), error.message)
        else:
            messages.success(request, f"The budget of {of.name} holds from the next cycle on.")
            return go(request, reverse("budget-list"))
    focus_fault(form)
    return _page(request, actor, form, status=422)


def _owners(actor: Actor) -> list[Project | Tenant]:
    """Those whose budgets the actor may set: as their quotas, of tenants fleet-wide only."""
    projects = people.projects_by_name(actor=actor, action=Action.EDIT_QUOTA)
    fleet_wide = Action.EDIT_QUOTA in actor.ceiling and actor.permits_everywhere(Action.EDIT_QUOTA)
    return [*projects, *(Tenant.objects.order_by("name", "id") if fleet_wide else ())]


def _page(
    request: HttpRequest, actor: Actor, form: BudgetForm, *, status: int = 200
) -> HttpResponse:
    rows = list(selectors.budgets(actor=actor).order_by("id")[:SHOWN])
    now = {each.budget.id: each for each in standings(budgets=rows, at=clock.now())}
    context = {
        "form": form if form.may_set else None,
        "budgets": [(row, now.get(row.id)) for row in rows],
    }
    return render(request, "tenants/budget_list.html", context, status=status)
