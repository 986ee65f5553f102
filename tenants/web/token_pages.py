"""API tokens of the one who is signed in: what there is, a new one, ending one."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of, named_project
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid
from controlplane.kernel.forms import no_fields
from controlplane.kernel.htmx import focus_fault, go, page, partial
from tenants.access import Actor
from tenants.models import Project, User
from tenants.selectors import people
from tenants.services import tokens
from tenants.web.forms import TokenForm

ENDED_SHOWN = 10


@page("GET", "HEAD", "POST")
def token_list(request: HttpRequest) -> HttpResponse:
    """The list with the form of a new one. The answer to a POST that worked, 201, is the one
    place that ever shows the token's text; 422 with the form when there can't be such a token."""
    actor = actor_of(request)
    if request.method != "POST":
        return _page(request, actor, _form(actor))
    project = named_project(request)
    form = _form(actor, request)
    if made := issued(actor, form, project=project):
        return _page(request, actor, _form(actor), made=made, status=201)
    return _page(request, actor, form, status=422)


def issued(
    actor: Actor, form: TokenForm, *, project: Project | None, account: User | None = None
) -> tuple[str, str] | None:
    """The name of a new token and its text; None where there can't be such a one, which the form
    tells then."""
    if form.is_valid():
        try:
            token, text = tokens.issue(
                actor=actor,
                account=account,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                project=project,
                lifetime=form.lifetime,
                at=clock.now(),
            )
        except Invalid as error:
            form.show(error.problems)
        else:
            return token.name, text
    focus_fault(form)
    return None


def _form(actor: Actor, request: HttpRequest | None = None) -> TokenForm:
    """As it was posted, else a new one."""
    posted = (request.POST, request.FILES) if request else ()
    projects = people.projects_by_name(actor=actor)
    return TokenForm(*posted, scopes=people.offered_scopes(actor=actor), projects=projects)


def _page(
    request: HttpRequest,
    actor: Actor,
    form: TokenForm,
    *,
    made: tuple[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`made` is the name of a new token and its text."""
    own = people.tokens(actor=actor)
    live, ended = people.tokens_by_end(own, at=clock.now(), ended=ENDED_SHOWN)
    context = {"form": form, "made": made, "live": live, "ended": ended}
    return partial(request, "tenants/token_list.html", "tokens", context, status=status)


@page("POST")
def token_revoke(request: HttpRequest, id: UUID) -> HttpResponse:
    """End it at once, and back to whose it was."""
    actor = actor_of(request)
    token = people.token(actor=actor, id=id)
    no_fields(request)
    tokens.revoke(actor=actor, token=token, at=clock.now())
    messages.success(request, f"{token.name} is revoked: nobody gets in by it any more.")
    if token.user.is_service:
        return go(request, reverse("service-account", args=[token.user_id]))
    return go(request, reverse("token-list"))
