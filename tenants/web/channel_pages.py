"""Where others are told what happens: the channels of the fleet, a tenant or a project."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict, Invalid
from controlplane.kernel.forms import StrictForm, no_fields
from controlplane.kernel.htmx import focus_fault, go, page, partial
from controlplane.kernel.throttle import TooOften
from tenants import access
from tenants.access import Action, Place
from tenants.models import TOLD, ChannelKind, Project
from tenants.selectors import channels as selectors
from tenants.selectors import deliveries
from tenants.services import channels, webhooks

_EVENTS = {
    "request.opened": "somebody asks for quota",
    "request.granted": "it is granted",
    "request.denied": "it is denied",
    "grant.ending": "a grant ends in 14 or 3 days",
    "grant.ended": "a grant has ended",
    "work.started": "work starts",
    "work.idle": "work leaves its devices unused, and may lose them for that",
    "work.stopped": "work is stopped early, and waits again",
    "work.ended": "work ends",
    "budget.warned": "most of a budget is used",
    "budget.used-up": "a budget is used up",
    "review.due": "a quota has to be confirmed in 30 or 7 days",
    "review.froze": "a quota that nobody confirmed is frozen",
}
_SELDOM = [event for event in TOLD if event not in {"work.started", "work.ended"}]
"""What a channel is told unless somebody says otherwise."""


class ChannelForm(StrictForm):
    secret = True

    name = forms.CharField(max_length=60, help_text="What it is for.")
    kind = forms.ChoiceField(
        choices=[
            (ChannelKind.JSON, "JSON, signed"),
            (ChannelKind.SLACK, "Slack, or what takes the same"),
        ]
    )
    url = forms.CharField(
        label="Address",
        max_length=webhooks.MAX_URL,
        help_text="https, to a public address. It is kept sealed and not shown again.",
    )
    events = forms.MultipleChoiceField(
        label="Told when",
        choices=[(event, _EVENTS[event]) for event in TOLD],
        initial=_SELDOM,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )


@page("GET", "HEAD", "POST")
def fleet_channels(request: HttpRequest) -> HttpResponse:
    return _channels(request, None)


@page("GET", "HEAD", "POST")
def tenant_channels(request: HttpRequest, id: UUID) -> HttpResponse:
    return _channels(request, access.tenant_or_404(actor_of(request), id))


@page("GET", "HEAD", "POST")
def project_channels(request: HttpRequest, id: UUID) -> HttpResponse:
    return _channels(request, access.project_or_404(actor_of(request), id))


@page("POST")
def channel_remove(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    channel = selectors.one(id=id, actor=actor)
    no_fields(request)
    channels.remove(actor=actor, channel=channel, at=clock.now())
    messages.success(request, f"{channel.name} is removed: nothing is sent there any more.")
    return go(request, _address(channels.place_of(channel)))


@page("POST")
def channel_test(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    channel = selectors.one(id=id, actor=actor)
    no_fields(request)
    try:
        channels.try_out(actor=actor, channel=channel, at=clock.now())
    except TooOften as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, f"A test goes to {channel.name}: what comes of it is here soon.")
    return go(request, _address(channels.place_of(channel)))


def _channels(request: HttpRequest, of: Place) -> HttpResponse:
    """The list with the form of a new one, for who may make one. The answer to a POST that worked,
    201, is the one place that ever shows the secret; 422 with the form when there can't be such a
    channel."""
    actor = actor_of(request)
    access.authorize_at(actor, Action.MANAGE_CHANNELS, place=of)
    if request.method != "POST":
        return _page(request, of, ChannelForm())
    form = ChannelForm(request.POST, request.FILES)
    if form.is_valid():
        asked = form.cleaned_data
        try:
            made, secret = channels.make(
                actor=actor,
                of=of,
                name=asked["name"],
                kind=ChannelKind(asked["kind"]),
                url=asked["url"],
                events=asked["events"],
                at=clock.now(),
            )
        except Invalid as error:
            form.show(error.problems)
        except Conflict as error:
            form.add_error("name", error.message)
        else:
            return _page(request, of, ChannelForm(), made=(made.name, secret), status=201)
    focus_fault(form)
    return _page(request, of, form, status=422)


def _page(
    request: HttpRequest,
    of: Place,
    form: ChannelForm,
    *,
    made: tuple[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`made` is the name of a new channel and its secret."""
    context = {
        "of": of,
        "is_project": isinstance(of, Project),
        "form": form,
        "made": made,
        "channels": selectors.at_place(of),
        "mail": deliveries.mail_trouble(at=clock.now()) if of is None else None,
    }
    return partial(request, "tenants/channels.html", "channels", context, status=status)


def _address(of: Place) -> str:
    if of is None:
        return reverse("channels")
    return reverse("project-channels" if isinstance(of, Project) else "tenant-channels",
                   args=[of.id])  # fmt: skip
