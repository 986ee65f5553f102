"""What may be submitted: what holds at a place and whose word it is, and the form that says it."""

from collections.abc import Callable, Mapping
from functools import partial as bound
from types import MappingProxyType
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Invalid
from controlplane.kernel.htmx import focus_fault, go, later, page, partial, refusal
from controlplane.kernel.throttle import TooOften
from scheduler.services import policy_trials, replays
from tenants import access, policy_words
from tenants.access import Action, Actor, Place
from tenants.models import Project
from tenants.policy import Rules
from tenants.selectors import policies as selectors
from tenants.services import policies
from tenants.web import replayed
from tenants.web.policy_forms import PolicyForm


@page("GET", "HEAD", "POST")
def fleet_policy(request: HttpRequest) -> HttpResponse:
    return _policy(request, actor_of(request), None)


@page("GET", "HEAD", "POST")
def tenant_policy(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    return _policy(request, actor, access.tenant_or_404(actor, id))


@page("GET", "HEAD", "POST")
def project_policy(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    return _policy(request, actor, access.project_or_404(actor, id))


def _policy(request: HttpRequest, actor: Actor, of: Place) -> HttpResponse:
    """What holds there. A POST tells what would have been refused lately, with `play` who would
    have waited longer, and with `save` it is said: 422 with the form when it can't be so, 409 when
    somebody said something meanwhile, 403 for who may not."""
    if request.method != "POST":
        own = selectors.own(of)
        return _page(request, actor, of, PolicyForm.of(own.rules, version=own.version))
    access.authorize_at(actor, Action.EDIT_POLICY, place=of)
    form = PolicyForm(request.POST, request.FILES)
    form.beside = frozenset({"save", "play"})
    if "save" not in request.POST:
        ask = _played if "play" in request.POST else _tried
        return _answered(request, actor, of, form, ask)
    status = refusal(
        form,
        lambda: policies.set_policy(
            actor=actor,
            of=of,
            rules=form.rules,
            version=form.cleaned_data["version"],
            at=clock.now(),
        ),
    )
    if status is not None:
        return _page(request, actor, of, form, status=status)
    messages.success(request, f"It holds for what is submitted from now on{_below(of)}.")
    return go(request, request.path)


def _answered(
    request: HttpRequest,
    actor: Actor,
    of: Place,
    form: PolicyForm,
    ask: Callable[[Actor, Place, Rules], dict[str, object]],
) -> HttpResponse:
    show = bound(_page, request, actor, of, form)
    if form.is_valid():
        try:
            found = ask(actor, of, form.rules)
        except Invalid as error:
            form.show(error.problems)
        except TooOften as error:
            found = {"refusal": error.message}
            return later(show(status=429, found=found), error)
        else:
            return show(found=found)
    focus_fault(form)
    return show(status=422)


def _tried(actor: Actor, of: Place, rules: Rules) -> dict[str, object]:
    found = policy_trials.tried(actor=actor, of=of, rules=rules, at=clock.now())
    by_rule = [(policy_words.RULES[each.rule], each) for each in found.rules]
    return {"trial": found, "tried_rules": by_rule}


def _played(actor: Actor, of: Place, rules: Rules) -> dict[str, object]:
    found = replays.of_policy(actor=actor, of=of, rules=rules, at=clock.now())
    return replayed.shown(found)


def _below(of: Place) -> str:
    if of is None:
        return ", anywhere"
    return f" to {of.name}" if isinstance(of, Project) else f" below {of.name}"


def _page(
    request: HttpRequest,
    actor: Actor,
    of: Place,
    form: PolicyForm,
    *,
    status: int = 200,
    found: Mapping[str, object] = MappingProxyType({}),
) -> HttpResponse:
    own = selectors.own(of)
    may_set = access.allowed_at(actor, Action.EDIT_POLICY, place=of)
    kept_above = own.is_from_above and not selectors.may_set_above(actor, of)
    context = {
        "of": of,
        "is_project": isinstance(of, Project),
        "form": form if may_set and not kept_above else None,
        "kept_above": may_set and kept_above,
        "in_force": policy_words.told(selectors.in_force(of, selectors.of_place(of))),
        **found,
    }
    return partial(request, "tenants/policy.html", "form", context, status=status)
