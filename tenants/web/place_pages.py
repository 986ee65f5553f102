"""The tree of tenants, and of each tenant and project who has a role there, its name and its
place. Of a tenant also what is reserved for all below it."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.charts import bullet
from controlplane.kernel.errors import Conflict, NotFound
from controlplane.kernel.forms import Posted, StrictForm, no_fields
from controlplane.kernel.htmx import go, page, refusal, refusal_status
from scheduler.core.reasons import in_units
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Project, Role, Tenant
from tenants.selectors import people, places, reservations, sessions
from tenants.services import group_roles, members, projects, tenants
from tenants.web.place_forms import (
    MemberForm,
    NameForm,
    ParentForm,
    ProjectForm,
    TenantForm,
    TenantOfForm,
)

type Place = Project | Tenant


@page("GET", "HEAD", "POST")
def tenant_list(request: HttpRequest) -> HttpResponse:
    """All tenants that the actor sees, as a tree; a POST makes one."""
    actor = actor_of(request)
    offered = places.owned_tenants(actor=actor)
    may_top = actor.permits_everywhere(Action.MANAGE_MEMBERS)
    form = TenantForm(
        request.POST if request.method == "POST" else None,
        request.FILES if request.method == "POST" else None,
        offered=offered,
        may_top=may_top,
    )
    status = 200
    if request.method == "POST":

        def make() -> None:
            made = tenants.create(
                actor=actor,
                parent=access.tenant_or_404(actor, form.chosen) if form.chosen else None,
                name=form.cleaned_data["name"],
                slug=form.cleaned_data["slug"],
                at=clock.now(),
            )
            messages.success(request, f"{made.name} is made. Give somebody a role there.")

        if not form.may_choose:
            access.authorize_fleet(actor, Action.MANAGE_MEMBERS)
        refused = refusal(form, make, about="slug")
        if refused is None:
            return go(request, reverse("tenant-list"))
        status = refused
    lines = [
        (
            line,
            [
                bullet(
                    id=f"t-{line.tenant.id}-{nth}",
                    title=total.flavor,
                    used=total.used_milli,
                    nominal=total.nominal_milli,
                    borrowing_limit=None,
                    unit=in_units,
                )
                for nth, total in enumerate(line.totals)
            ],
        )
        for line in places.tenant_lines(actor=actor)
    ]
    context = {
        "lines": lines,
        "form": form if form.may_choose else None,
        "may_see_groups": form.may_choose and bool(group_roles.providers_with_groups()),
        "may_see_tokens": may_top,
        "may_see_accounts": sessions.may_see_accounts(actor),
        "may_manage_channels": access.allowed_at(actor, Action.MANAGE_CHANNELS, place=None),
    }
    return render(request, "tenants/tenant_list.html", context, status=status)


@page("GET", "HEAD")
def tenant_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    return _page(request, access.tenant_or_404(actor_of(request), id))


@page("GET", "HEAD")
def project_people(request: HttpRequest, id: UUID) -> HttpResponse:
    return _page(request, people.project(actor=actor_of(request), id=id))


@page("POST")
def tenant_rename(request: HttpRequest, id: UUID) -> HttpResponse:
    tenant = access.tenant_or_404(actor_of(request), id)
    return _rename(request, tenant, partial(tenants.rename, tenant=tenant))


@page("POST")
def project_rename(request: HttpRequest, id: UUID) -> HttpResponse:
    project = people.project(actor=actor_of(request), id=id)
    return _rename(request, project, partial(projects.rename, project=project))


def _rename(request: HttpRequest, place: Place, rename: Callable[..., Place]) -> HttpResponse:
    form = NameForm(request.POST, request.FILES)

    def save(by: Actor) -> str:
        made = rename(actor=by, name=form.cleaned_data["name"], at=clock.now())
        return f"It is called {made.name} now."

    return _save(request, place, form, "name_form", save)


@page("POST")
def tenant_move(request: HttpRequest, id: UUID) -> HttpResponse:
    tenant = access.tenant_or_404(actor_of(request), id)
    form = _place_form(request, tenant, request.POST)

    def save(by: Actor) -> str:
        parent = access.tenant_or_404(by, form.chosen) if form.chosen else None
        tenants.move(actor=by, tenant=tenant, parent=parent, at=clock.now())
        return (
            f"{tenant.name} is a department of {parent.name} now."
            if parent
            else (f"{tenant.name} is an organisation now.")
        )

    return _save(request, tenant, form, "place_form", save, about="parent")


@page("POST")
def project_move(request: HttpRequest, id: UUID) -> HttpResponse:
    project = people.project(actor=actor_of(request), id=id)
    form = _place_form(request, project, request.POST)

    def save(by: Actor) -> str:
        assert form.chosen is not None  # noqa: S101  # it is required
        tenant = access.tenant_or_404(by, form.chosen)
        projects.move(actor=by, project=project, tenant=tenant, at=clock.now())
        return f"{project.name} is a project of {tenant.name} now."

    return _save(request, project, form, "place_form", save, about="tenant")


@page("POST")
def project_new(request: HttpRequest, id: UUID) -> HttpResponse:
    tenant = access.tenant_or_404(actor_of(request), id)
    form = ProjectForm(request.POST, request.FILES)

    def save(by: Actor) -> str:
        made = projects.create(actor=by, tenant=tenant, at=clock.now(), **form.cleaned_data)
        return f"{made.name} is made. It has no quota yet, and nobody a role there alone."

    return _save(request, tenant, form, "project_form", save, about="slug")


@page("POST")
def tenant_member(request: HttpRequest, id: UUID) -> HttpResponse:
    return _grant(request, access.tenant_or_404(actor_of(request), id))


@page("POST")
def project_member(request: HttpRequest, id: UUID) -> HttpResponse:
    return _grant(request, people.project(actor=actor_of(request), id=id))


@page("POST")
def member_revoke(request: HttpRequest, id: UUID) -> HttpResponse:
    """Take a role at a tenant or project back; what refuses it is told on that page."""
    actor = actor_of(request)
    member = people.member(actor=actor, id=id)
    place = member.project or member.tenant
    if place is None:
        raise NotFound("There is no such member.")
    no_fields(request)
    try:
        members.revoke(actor=actor, member=member, at=clock.now())
    except Conflict as error:
        return _page(request, place, refused=error.message, status=refusal_status(error))
    messages.success(request, f"{member.user.username} is no {member.role} of {place.name} now.")
    return go(request, _url(place))


def _grant(request: HttpRequest, place: Place) -> HttpResponse:
    form = MemberForm(request.POST, request.FILES)

    def save(by: Actor) -> str:
        role = Role(form.cleaned_data["role"])
        user = members.named(actor=by, username=form.cleaned_data["user"], role=role, place=place)
        members.grant(actor=by, user=user, role=role, place=place, at=clock.now())
        return f"{user.username} is {role.label.lower()} of {place.name} now."

    return _save(request, place, form, "member_form", save)


def _place_form(
    request: HttpRequest, place: Place, data: Posted = None
) -> ParentForm | TenantOfForm:
    actor = actor_of(request)
    offered = places.owned_tenants(actor=actor)
    if isinstance(place, Project):
        return TenantOfForm(data, offered=offered, now=place.tenant_id)
    below = actor.tenants_below(place.id)
    return ParentForm(
        data,
        offered=[tenant for tenant in offered if tenant.id not in below],
        may_top=actor.permits_everywhere(Action.MANAGE_MEMBERS),
        now=place.parent_id,
    )


def _save(
    request: HttpRequest,
    place: Place,
    form: StrictForm,
    name: str,
    save: Callable[[Actor], str],
    *,
    about: str | None = None,
) -> HttpResponse:
    """Back to the page with what `save` says was done; else the page with the form, as `name`."""
    actor = actor_of(request)
    status = refusal(form, lambda: messages.success(request, save(actor)), about=about)
    if status is None:
        return go(request, _url(place))
    return _page(request, place, {name: form}, status=status)


def _url(place: Place) -> str:
    name = "project-people" if isinstance(place, Project) else "tenant-detail"
    return reverse(name, args=[place.id])


def _page(
    request: HttpRequest,
    place: Place,
    posted: Mapping[str, StrictForm] = MappingProxyType({}),
    *,
    refused: str = "",
    status: int = 200,
) -> HttpResponse:
    """With the form that was posted, by its name; the others are as things are now."""
    actor, at = actor_of(request), clock.now()
    is_project = isinstance(place, Project)
    kept = [] if is_project else reservations.upcoming(actor=actor, at=at, of=place)
    may_manage = (
        access.allowed(actor, Action.MANAGE_MEMBERS, project=place)
        if isinstance(place, Project)
        else access.allowed_for_tenant(actor, Action.MANAGE_MEMBERS, tenant=place)
    )
    context = {
        "place": place,
        "is_project": is_project,
        "above": place.tenant if isinstance(place, Project) else place.parent,
        "people": places.people(actor=actor, place=place),
        "may_manage": may_manage,
        "may_manage_channels": not is_project
        and access.allowed_at(actor, Action.MANAGE_CHANNELS, place=place),
        "at": at,
        "reservations": kept,
        "refused": refused,
        "name_form": NameForm(initial={"name": place.name}),
        "place_form": _place_form(request, place),
        "project_form": ProjectForm(),
        "member_form": MemberForm(),
    }
    return render(request, "tenants/place_detail.html", {**context, **posted}, status=status)
