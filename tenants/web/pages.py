"""Quota: the tree with what is used of it, and the form that asks for more."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from clusters.models import SEVENTHS, Flavor
from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.charts import Bullet, bullet
from controlplane.kernel.errors import Invalid
from controlplane.kernel.htmx import focus_fault, go, page, partial, revision, unchanged
from scheduler.core.reasons import in_units
from tenants.access import Action
from tenants.models import Project
from tenants.selectors import people, tree
from tenants.selectors.tree import Branch, QuotaLine, SharedLine
from tenants.services import requests
from tenants.web.forms import RequestForm


@dataclass(frozen=True, slots=True)
class TenantBranches:
    """The projects of one tenant; `path` is where it hangs in the tree, and `shared` what the
    tenants there have for all below them."""

    path: tuple[str, ...]
    shared: tuple[SharedLine, ...]
    branches: tuple[tuple[Branch, tuple[tuple[QuotaLine, Bullet], ...]], ...]


@page("GET", "HEAD")
def quota_list(request: HttpRequest) -> HttpResponse:
    """Every project the actor sees, with a bar for each flavor that it has quota of."""
    actor = actor_of(request)
    branches = tree.branches(actor=actor)
    rev = revision(branches)
    same = unchanged(request, rev)
    if same is not None:
        return same
    context = {
        "trees": _by_tenant(branches),
        "may_request": any(branch.may_request for branch in branches),
        "may_edit_tenants": actor.permits_everywhere(Action.EDIT_QUOTA),
        "over_models": any(q.flavor.endswith(SEVENTHS) for b in branches for q in b.quotas),
        "rev": rev,
    }
    return partial(request, "tenants/quota_list.html", "tree", context)


def _by_tenant(branches: tuple[Branch, ...]) -> list[TenantBranches]:
    groups: dict[tuple[str, ...], list[Branch]] = {}
    for branch in branches:
        groups.setdefault(branch.path, []).append(branch)
    return [
        TenantBranches(path, group[0].shared, tuple((b, _bullets(b)) for b in group))
        for path, group in groups.items()
    ]


def _bullets(branch: Branch) -> tuple[tuple[QuotaLine, Bullet], ...]:
    return tuple(
        (
            quota,
            bullet(
                id=f"b-{branch.id}-{quota.flavor_id}",
                title=quota.flavor,
                used=quota.used_milli,
                nominal=quota.nominal_milli,
                borrowing_limit=quota.borrowing_limit_milli,
                unit=in_units,
            ),
        )
        for quota in branch.quotas
    )


@page("GET", "HEAD", "POST")
def request_new(request: HttpRequest) -> HttpResponse:
    """Ask for quota; 422 with the form when it can't be asked like that."""
    actor = actor_of(request)
    project = named_project(request)
    projects = people.projects_by_name(actor=actor, action=Action.REQUEST_QUOTA)
    flavors = list(Flavor.objects.order_by("name"))
    if request.method != "POST":
        start: dict[str, object] = {name: request.GET.get(name) for name in ("project", "flavor")}
        if len(projects) == 1:
            start["project"] = str(projects[0].id)
        form = RequestForm(projects=projects, flavors=flavors, initial=start)
        return _form_page(request, form, projects)
    form = RequestForm(request.POST, request.FILES, projects=projects, flavors=flavors)
    if form.is_valid() and project:
        try:
            quota_request = requests.open(
                actor=actor,
                project=project,
                flavor=next(f for f in flavors if f.name == form.cleaned_data["flavor"]),
                nominal_milli=form.nominal_milli,
                reason=form.cleaned_data["reason"],
                at=clock.now(),
            )
        except Invalid as error:
            form.show(error.problems)
        else:
            messages.success(
                request,
                f"Asked for {in_units(quota_request.nominal_milli)} {quota_request.flavor.name}.",
            )
            return go(request, reverse("request-list"))
    focus_fault(form)
    return _form_page(request, form, projects, status=422)


def _form_page(
    request: HttpRequest, form: RequestForm, projects: list[Project], *, status: int = 200
) -> HttpResponse:
    held = tree.by_project(projects)
    context = {
        "form": form,
        "projects": [(project, held.get(project.id, ())) for project in projects],
    }
    return partial(request, "tenants/request_new.html", "form", context, status=status)
