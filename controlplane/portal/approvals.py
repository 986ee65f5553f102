"""Requests for quota: everybody's own, and the answer by those who may give one. Beside them, the
gates of work that wait for the reader, which are decided on its page, and the quotas that they
confirm."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.timezone import localtime

from clusters.models import Flavor
from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import AppError, Conflict, Invalid, NotAllowed
from controlplane.kernel.htmx import (
    go,
    id_in,
    later,
    minute,
    page,
    partial,
    refusal_status,
    revision,
    unchanged,
)
from controlplane.kernel.throttle import TooOften
from scheduler.core.reasons import in_units
from scheduler.core.simulating.estimate import HORIZON_S
from scheduler.selectors import capacity, confinements, guarantees
from scheduler.selectors import gates as of_gates
from scheduler.selectors.confinements import Change, Lagging
from scheduler.services import impacts
from tenants import access
from tenants.access import Action, Actor
from tenants.models import Decision, QuotaRequest
from tenants.selectors import people
from tenants.selectors import requests as of_requests
from tenants.selectors import reviews as of_reviews
from tenants.selectors.requests import QuotaRequestLine
from tenants.services import answers, requests
from tenants.services.answers import Answer
from tenants.web.request_forms import AmountForm, AnswersForm, DecisionForm

GATES_SHOWN = 50
"""Of those that wait for the reader, the oldest."""


@page("GET", "HEAD")
def request_list(request: HttpRequest) -> HttpResponse:
    """Open requests, then the answered ones, of all projects that the actor sees."""
    return _list(request, actor_of(request))


def _list(
    request: HttpRequest,
    actor: Actor,
    *,
    at_fault: UUID | None = None,
    form: DecisionForm | None = None,
    answers: AnswersForm | None = None,
    refusal: AppError | None = None,
    status: int = 200,
) -> HttpResponse:
    waiting = sorted(
        of_requests.open_lines(actor=actor, at=minute(clock.now()), detailed=True),
        key=lambda line: (not line.may_decide, not line.is_coming),
    )
    decided, older = of_requests.decided_lines(actor=actor, before=id_in(request.GET, "before"))
    lagging = _lagging(decided)
    gates = list(of_gates.to_decide(actor=actor).order_by("id")[:GATES_SHOWN])
    reviews = [
        (project, of_reviews.due_at(project))
        for project in of_reviews.to_confirm(actor=actor, at=clock.now())
    ]
    reviewed = [(project.id, project.quota_frozen_at) for project, _ in reviews]
    rev = revision(
        waiting, decided, lagging, [gate.id for gate in gates], reviewed, minute(clock.now())
    )
    same = None if status != 200 else unchanged(request, rev)
    if same is not None:
        return same
    places = _places(waiting)
    context = {
        "waiting": [
            (
                quota_request,
                form
                if quota_request.id == at_fault and form
                else DecisionForm(asked=quota_request),
                places.get(quota_request.flavor, ()),
            )
            for quota_request in waiting
        ],
        "decided": [(line, lagging.get(line.id, ())) for line in decided],
        "gates": gates,
        "to_confirm": reviews,
        "older_url": f"{reverse('request-list')}?before={older}" if older else "",
        "before": request.GET.get("before", ""),
        "may_request": people.projects(actor=actor, action=Action.REQUEST_QUOTA).exists(),
        "to_decide": sum(1 for quota_request in waiting if quota_request.may_decide),
        "coming": sum(1 for quota_request in waiting if quota_request.is_coming),
        "answers": answers,
        "chosen": request.POST.getlist("chosen"),
        "refusal": refusal.message if refusal else "",
        "at_fault": at_fault,
        "rev": rev,
    }
    return partial(request, "portal/request_list.html", "requests", context, status=status)


def _places(waiting: Iterable[QuotaRequestLine]) -> dict[str, tuple[str, ...]]:
    """By flavor, the clusters that have any."""
    names = {line.flavor for line in waiting}
    flavors = {flavor.id: flavor for flavor in Flavor.objects.filter(name__in=names)}
    found = capacity.places(flavors=flavors.values()) if flavors else {}
    return {flavors[id].name: clusters for id, clusters in found.items()}


def _lagging(decided: Iterable[QuotaRequestLine]) -> dict[UUID, tuple[Lagging, ...]]:
    """By request, where what was granted, or its end, is not applied yet."""
    changes = {
        line.id: Change(line.project_id, line.grant.flavor_id, line.grant.quota_version)
        for line in decided
        if line.grant and line.grant.quota_version is not None
    }
    if not changes:
        return {}
    found = confinements.lagging(changes=changes.values())
    return {id: found[change] for id, change in changes.items()}


@page("GET", "HEAD")
def request_impact(request: HttpRequest, id: UUID) -> HttpResponse:
    """Who would wait longer, and who loses what they borrow, if it were granted, or `?amount=`
    instead of what is asked. 409 once it is decided, 422 for an amount that is none, 429 when it
    was asked for too often."""
    actor = actor_of(request)
    quota_request = of_requests.request(actor=actor, id=id)
    form = AmountForm(request.GET)
    found, refused, status, often = None, "", 200, None
    if form.is_valid():
        try:
            found = impacts.preview(
                actor=actor, request=quota_request, nominal_milli=form.milli, at=clock.now()
            )
        except TooOften as error:
            refused, status, often = error.message, 429, error
        except (Conflict, Invalid) as error:
            refused, status = error.message, refusal_status(error)
    else:
        refused, status = form.fault, 422
    context = {
        "quota_request": quota_request,
        "impact": found,
        "preview": found.previewed.sign() if found else "",
        "refused": refused,
        "horizon_s": HORIZON_S,
    }
    answer = partial(request, "portal/request_impact.html", "impact", context, status=status)
    return later(answer, often) if often else answer


@page("POST")
def request_decide(request: HttpRequest, id: UUID) -> HttpResponse:
    """Grant or deny. What is refused is told on the list, with the reason."""
    actor = actor_of(request)
    quota_request = access.get_or_404(
        QuotaRequest.objects.select_related("project", "flavor"), actor=actor, id=id
    )
    form = DecisionForm(request.POST, request.FILES, asked=quota_request)
    if not form.is_valid():
        return _list(request, actor, at_fault=id, form=form, status=422)
    try:
        told = _decide(actor, quota_request, form)
    except Invalid as error:
        form.show(error.problems)
        return _list(request, actor, at_fault=id, form=form, status=422)
    except NotAllowed as error:
        return _list(request, actor, refusal=error, status=403)
    except Conflict as error:
        return _list(request, actor, refusal=error, status=409)
    messages.success(request, told)
    if quota_request.decision == Decision.GRANTED:
        _warn(request, [quota_request])
    return go(request, reverse("request-list"))


@page("POST")
def requests_decide(request: HttpRequest) -> HttpResponse:
    """Grant as asked, or deny, all that are chosen. What came of each is told on the list."""
    actor = actor_of(request)
    form = AnswersForm(request.POST, request.FILES)
    if not form.is_valid():
        return _list(request, actor, answers=form, status=422)
    say = answers.deny if form.cleaned_data["decision"] == "deny" else answers.grant
    try:
        found = say(
            actor=actor,
            chosen=form.cleaned_data["chosen"],
            note=form.cleaned_data["note"],
            at=clock.now(),
        )
    except Invalid as error:
        form.show(error.problems)
        return _list(request, actor, answers=form, status=422)
    _tell(request, found)
    _warn(request, answers.granted(found))
    return go(request, reverse("request-list"))


_OUTCOMES = {
    "granted": "Granted",
    "agreed": "Agreed, and somebody else decides the next step",
    "denied": "Denied",
}


def _tell(request: HttpRequest, found: Iterable[Answer]) -> None:
    by_outcome: dict[str, list[str]] = {}
    for answer in found:
        of = answer.request
        name = f"{of.project.name}, {of.flavor.name}" if of else f"request {answer.id}"
        if answer.refusal is not None:
            messages.warning(request, f"Not decided: {name}. {answer.refusal.message}")
        else:
            by_outcome.setdefault(answer.outcome, []).append(name)
    for outcome, names in by_outcome.items():
        messages.success(request, f"{_OUTCOMES[outcome]}: {'; '.join(names)}.")


def _warn(request: HttpRequest, granted: Collection[QuotaRequest]) -> None:
    """Where more is guaranteed than there is since then."""
    for warning in guarantees.warnings_of_all([(of.flavor, of.project) for of in granted]):
        messages.warning(request, warning)


def _decide(actor: Actor, quota_request: QuotaRequest, form: DecisionForm) -> str:
    """Call the service; what happened, in words."""
    at, note = clock.now(), form.cleaned_data["note"]
    name = f"{quota_request.project.name}'s request for {quota_request.flavor.name}"
    if form.cleaned_data["decision"] == "deny":
        requests.deny(
            actor=actor, request=quota_request, note=note, version=form.seen.request,
            step=form.seen.step, at=at,
        )  # fmt: skip
        return f"{name} is denied."
    given = form.given
    requests.grant(
        actor=actor, request=quota_request, note=note, given=given, seen=form.seen,
        previewed=form.previewed, at=at,
    )  # fmt: skip
    if not quota_request.decision:
        return f"You agreed to {name}; somebody else decides the next step."
    held = f"{in_units(given.nominal_milli)} {quota_request.flavor.name}"
    begins = quota_request.grant.begun_at is not None
    when = "from now on" if begins else f"from {localtime(quota_request.grant.from_at):%F %R} on"
    until = f", until {localtime(given.until_at):%F %R}" if given.until_at else ""
    return f"{quota_request.project.name} may hold {held} {when}{until}."
