"""Service accounts of a tenant or a project, for who owns it: what there is, a new one, and of
each its tokens and its end."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm, no_fields
from controlplane.kernel.htmx import go, page, partial, refusal
from tenants import access
from tenants.models import Project, Role, Tenant, User
from tenants.selectors import people
from tenants.selectors import service_accounts as selectors
from tenants.services import service_accounts
from tenants.web.forms import TokenForm
from tenants.web.token_pages import ENDED_SHOWN, issued


class AccountForm(StrictForm):
    name = forms.CharField(
        max_length=40, help_text="What it is for: a-z, 0-9 and -, such as nightly-tests."
    )
    role = forms.ChoiceField(choices=[(role.value, role.label) for role in access.SERVICE_ROLES])


@page("GET", "HEAD", "POST")
def tenant_accounts(request: HttpRequest, id: UUID) -> HttpResponse:
    return _accounts(request, access.tenant_or_404(actor_of(request), id))


@page("GET", "HEAD", "POST")
def project_accounts(request: HttpRequest, id: UUID) -> HttpResponse:
    return _accounts(request, people.project(actor=actor_of(request), id=id))


def _accounts(request: HttpRequest, place: Project | Tenant) -> HttpResponse:
    """The list with the form of a new one, whose page a POST that worked leads to."""
    actor = actor_of(request)
    accounts = selectors.at_place(actor=actor, place=place, at=clock.now())
    form, status = AccountForm(), 200
    if request.method == "POST":
        form = AccountForm(request.POST, request.FILES)
        made: list[User] = []

        def make() -> None:
            name, role = form.cleaned_data["name"], Role(form.cleaned_data["role"])
            made.append(
                service_accounts.make(
                    actor=actor, place=place, name=name, role=role, at=clock.now()
                )
            )

        refused = refusal(form, make, about="name")
        if refused is None:
            messages.success(request, "It is made. It gets in by a token, which you make here.")
            return go(request, reverse("service-account", args=[made[0].id]))
        status = refused
    context = {
        "place": place,
        "is_project": isinstance(place, Project),
        "accounts": accounts.order_by("-is_active", "username"),
        "form": form,
    }
    template = "tenants/service_account_list.html"
    return partial(request, template, "accounts", context, status=status)


@page("GET", "HEAD", "POST")
def account_detail(request: HttpRequest, id: UUID) -> HttpResponse:
    """Its tokens with the form of a new one. The answer to a POST that worked, 201, is the one
    place that ever shows a token's text; 422 with the form when there can't be such a token."""
    actor = actor_of(request)
    account = selectors.one(actor=actor, id=id)
    if request.method != "POST":
        return _page(request, account, _form(account))
    project = named_project(request)
    form = _form(account, request)
    if made := issued(actor, form, project=project, account=account):
        return _page(request, account, _form(account), made=made, status=201)
    return _page(request, account, form, status=422)


@page("POST")
def account_close(request: HttpRequest, id: UUID) -> HttpResponse:
    account = selectors.one(actor=actor_of(request), id=id)
    no_fields(request)
    ended = service_accounts.close(actor=actor_of(request), account=account, at=clock.now())
    told = (
        f"{account.username} is closed, with {ended} live tokens: nobody gets in by it any more."
    )
    messages.success(request, told)
    return go(request, _list_url(account))


def _form(account: User, request: HttpRequest | None = None) -> TokenForm:
    """As it was posted, else a new one."""
    posted = (request.POST, request.FILES) if request else ()
    itself = access.actor_for(user=account)
    return TokenForm(
        *posted,
        scopes=people.offered_scopes(actor=itself),
        projects=people.projects_by_name(actor=itself),
        everywhere="Wherever the account has its role",
    )


def _page(
    request: HttpRequest,
    account: User,
    form: TokenForm,
    *,
    made: tuple[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`made` is the name of a new token and its text."""
    rows = selectors.tokens(account=account)
    live, ended = people.tokens_by_end(rows, at=clock.now(), ended=ENDED_SHOWN)
    context = {
        "account": account,
        "place": account.service_place,
        "list_url": _list_url(account),
        "roles": [member.get_role_display() for member in account.memberships.order_by("role")],
        "form": form,
        "made": made,
        "live": live,
        "ended": ended,
    }
    template = "tenants/service_account_detail.html"
    return partial(request, template, "tokens", context, status=status)


def _list_url(account: User) -> str:
    kind, id = (
        ("project", account.service_project_id)
        if account.service_project_id
        else ("tenant", account.service_tenant_id)
    )
    return reverse(f"{kind}-service-accounts", args=[id])
