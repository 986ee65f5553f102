"""Which groups of sign-in providers have which roles, where the reader says who has one."""

from collections.abc import Sequence
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.forms import Posted, StrictForm, no_fields
from controlplane.kernel.htmx import go, page, refusal
from tenants import access
from tenants.access import Action, Actor, Place
from tenants.models import MAX_GROUP, Project, Role, Tenant
from tenants.selectors import group_roles as selectors
from tenants.selectors import people, places
from tenants.services import group_roles

_FLEET = "fleet"


class GroupRoleForm(StrictForm):
    """`place` is the fleet, or a kind and an id."""

    provider = forms.ChoiceField()
    group = forms.CharField(max_length=MAX_GROUP, help_text="As the provider calls it.")
    role = forms.ChoiceField(
        choices=[(role.value, role.label) for role in Role], initial=Role.VIEWER.value
    )
    place = forms.ChoiceField(label="Where, and at all below it")

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        may_fleet: bool,
        tenants: Sequence[Tenant],
        projects: Sequence[Project],
    ) -> None:
        super().__init__(data, files)
        providers = list(group_roles.providers_with_groups().items())
        self.choose("provider", providers)
        offered = [(_FLEET, "The whole fleet")] if may_fleet else []
        offered += [(f"tenant {tenant.id}", tenant.name) for tenant in tenants]
        offered += [(f"project {project.id}", project.full_name) for project in projects]
        self.choose("place", offered)
        self.may_add = bool(providers and offered)

    def chosen(self, actor: Actor) -> Place:
        kind, _, id = self.cleaned_data["place"].partition(" ")
        if kind == _FLEET:
            return None
        if kind == "tenant":
            return access.tenant_or_404(actor, UUID(id))
        return access.project_or_404(actor, UUID(id))


@page("GET", "HEAD", "POST")
def group_role_list(request: HttpRequest) -> HttpResponse:
    """A POST adds one; 422 with the form when there can't be such a one."""
    actor = actor_of(request)
    if request.method != "POST":
        return _page(request, actor, _form(actor), status=200)
    form = _form(actor, request)

    def save() -> None:
        made = group_roles.add(
            actor=actor,
            provider=form.cleaned_data["provider"],
            group=form.cleaned_data["group"],
            role=Role(form.cleaned_data["role"]),
            place=form.chosen(actor),
            at=clock.now(),
        )
        told = f"{made.group} of {made.provider} is {made.role} from their next sign-in on."
        messages.success(request, told)

    status = refusal(form, save)
    if status is None:
        return go(request, reverse("group-role-list"))
    return _page(request, actor, form, status=status)


@page("POST")
def group_role_remove(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    found = selectors.group_role(actor=actor, id=id)
    no_fields(request)
    count = group_roles.remove(actor=actor, group_role=found, at=clock.now())
    told = f"{found.group} of {found.provider} is no {found.role} now; it was of {count} people."
    messages.success(request, told)
    return go(request, reverse("group-role-list"))


def _form(actor: Actor, request: HttpRequest | None = None) -> GroupRoleForm:
    """As it was posted, else a new one."""
    posted = (request.POST, request.FILES) if request else ()
    return GroupRoleForm(
        *posted,
        may_fleet=actor.permits_everywhere(Action.MANAGE_MEMBERS),
        tenants=places.owned_tenants(actor=actor),
        projects=people.projects_by_name(actor=actor, action=Action.MANAGE_MEMBERS),
    )


def _page(request: HttpRequest, actor: Actor, form: GroupRoleForm, *, status: int) -> HttpResponse:
    rows = selectors.group_roles(actor=actor).order_by("provider", "group", "role", "id")
    context = {"group_roles": rows, "form": form if form.may_add or form.errors else None}
    return render(request, "tenants/group_role_list.html", context, status=status)
