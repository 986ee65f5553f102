"""Budgets: what projects and tenants may use in a period, what is used, and the forms that make,
change and remove them."""

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid, NotAllowed
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import focus_fault, go, later, page
from controlplane.kernel.throttle import TooOften
from scheduler.selectors.budgets import standings
from scheduler.services import stopping
from tenants.access import Actor
from tenants.models import Budget, Period, Project, Tenant
from tenants.selectors import budgets as selectors
from tenants.selectors import places
from tenants.services import budgets, quotas
from tenants.services.quotas import VersionMismatch
from tenants.web.budget_api import Out, stops_shown
from tenants.web.budget_forms import BudgetForm, TermsForm

SHOWN = 200
"""Budgets that the page lists, the oldest first."""


@page("GET", "HEAD", "POST")
def budget_list(request: HttpRequest) -> HttpResponse:
    """The list, and for those who may set quotas the form of a new one; 422 with that when there
    can't be such a budget. A POST that would stop work at once tells whose, and sets it only if
    that was told of the same before. Raises NotAllowed for others who post."""
    actor = actor_of(request)
    owners = places.quota_owners(actor=actor)
    if request.method != "POST":
        return _list(request, actor, BudgetForm(owners=owners), owners)
    if not owners:
        raise NotAllowed("To set a budget takes a role that may set quotas.")
    form = BudgetForm(request.POST, request.FILES, owners=owners)
    answer = partial(_list, request, actor, form, owners)
    return _set(request, actor, form, answer, lambda: _Wanted(form.owner, form.its_period, 0))


@page("GET", "HEAD", "POST")
def budget_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """The form that changes one; 422 with that when it can't be so, 409 when another changed it
    meanwhile. A POST tells who would be stopped, as that of the list. Raises NotAllowed for those
    who may not set it."""
    actor = actor_of(request)
    budget = selectors.budget(actor=actor, id=id)
    quotas.authorize(actor, budget.owner)
    if request.method != "POST":
        return _form(request, budget, TermsForm(budget=budget))
    form = TermsForm(request.POST, request.FILES, budget=budget)

    def wanted() -> _Wanted:
        return _Wanted(budget.owner, Period(budget.period), form.cleaned_data["version"])

    return _set(request, actor, form, partial(_form, request, budget, form), wanted)


class _Wanted(NamedTuple):
    """Whose budget for which periods; `version` 0 where there is none yet."""

    of: Project | Tenant
    period: Period
    version: int


def _set(
    request: HttpRequest,
    actor: Actor,
    form: BudgetForm | TermsForm,
    answer: Callable[..., HttpResponse],
    wanted: Callable[[], _Wanted],
) -> HttpResponse:
    """Set what the form asks for, or `answer` with it: who would be stopped, or what is wrong."""
    status = 422
    if form.is_valid():
        of, period, version = wanted()
        preview = partial(stopping.preview, actor=actor, of=of, period=period, version=version)
        save = partial(budgets.set_budget, actor=actor, of=of, period=period, version=version)
        try:
            if request.POST.get("seen") != form.asked():
                found = preview(terms=form.terms, at=clock.now())
                if found.losses:
                    return answer(stops=stops_shown(found))
            save(terms=form.terms, at=clock.now())
        except Invalid as error:
            form.show(error.problems)
        except VersionMismatch as error:
            if version:
                form.add_error(None, error.message)
                status = 409
            else:
                form.add_error("period", f"{of.name} has such a budget already: change that one.")
        except TooOften as error:
            form.add_error(None, error.message)
            return later(answer(status=429), error)
        else:
            return _done(request, f"The budget of {of.name} holds from the next cycle on.")
    focus_fault(form)
    return answer(status=status)


@page("POST")
def budget_remove(request: HttpRequest, id: UUID) -> HttpResponse:
    """Keep nobody waiting by it any more."""
    actor = actor_of(request)
    budget = selectors.budget(actor=actor, id=id)
    no_fields(request)
    budgets.remove(actor=actor, budget=budget, at=clock.now())
    return _done(request, f"The budget of {budget.owner.name} is removed.")


def _list(
    request: HttpRequest,
    actor: Actor,
    form: BudgetForm,
    owners: Collection[Project | Tenant],
    *,
    stops: Out | None = None,
    status: int = 200,
) -> HttpResponse:
    rows = list(selectors.budgets(actor=actor).order_by("id")[:SHOWN])
    now = {each.budget.id: each for each in standings(budgets=rows, at=clock.now())}
    may_set = {owner.id for owner in owners}
    context = {
        "form": form if form.may_set else None,
        "stops": stops,
        "budgets": [(row, now.get(row.id), row.owner.id in may_set) for row in rows],
    }
    return render(request, "tenants/budget_list.html", context, status=status)


def _form(
    request: HttpRequest,
    budget: Budget,
    form: TermsForm,
    *,
    stops: Out | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"budget": budget, "form": form, "stops": stops}
    return render(request, "tenants/budget_detail.html", context, status=status)


def _done(request: HttpRequest, told: str) -> HttpResponse:
    messages.success(request, told)
    return go(request, reverse("budget-list"))
