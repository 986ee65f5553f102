"""Somebody whom a provider sends back: what all kinds of providers' answers have alike."""

import logging
from collections.abc import Iterable

import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.kernel import clock, text
from controlplane.kernel.errors import NotAllowed
from tenants.models import MAX_GROUP
from tenants.services import arrivals
from tenants.services.arrivals import Arrival

logger = logging.getLogger(__name__)

_LONGEST_SUBJECT = 191  # allauth's column
_MOST_GROUPS = 2000
_GROUPS_SHOWN = 20


class NotBelieved(Exception):
    """A provider's answer that says what no sound one would, or says nothing that can be used."""


def comes(request: HttpRequest, at: Provider, arrival: Arrival) -> SocialLogin:
    """The account of who came, whose roles are those that their groups have now. Raises
    ImmediateHttpResponse for somebody who may not come in."""
    try:
        arrivals.arrive(arrival, at=clock.now())
    except NotAllowed as error:
        shown = sorted(arrival.groups or ())[:_GROUPS_SHOWN]
        answer = refusal(request, error.message, groups=shown, status=403)
        raise ImmediateHttpResponse(answer) from error
    account = SocialAccount(provider=arrival.provider, uid=arrival.subject)
    return SocialLogin(account=account, provider=at)


def failed(request: HttpRequest, app: SocialApp, why: Exception | str) -> HttpResponse:
    """The page of a provider that does not answer, or not as it should; why is in the log."""
    # By its ASCII: what is wrong may be quoted of what anybody sent.
    logger.warning("signing in by %s failed: %.500s", app.provider_id, ascii(str(why)))
    if isinstance(why, requests.RequestException):
        return refusal(request, f"{app.name} does not answer. Try again in a minute.", status=503)
    if isinstance(why, str):
        return refusal(request, f"{app.name} signed nobody in. Start again.", status=403)
    return refusal(request, f"{app.name} gave an answer that can't be believed.", status=403)


def refusal(
    request: HttpRequest, message: str, *, groups: Iterable[str] = (), status: int
) -> HttpResponse:
    """The page that says why nobody was signed in; `groups` are what the provider told."""
    context = {"message": message, "groups": list(groups)}
    return render(request, "portal/provider_refusal.html", context, status=status)


def arrival(
    provider: str,
    *,
    subject: object,
    username: object,
    full_name: object,
    email: object,
    is_verified: bool,
    groups: frozenset[str] | None,
) -> Arrival:
    """Of what a provider told, whatever that is. Raises NotBelieved for a subject that can't be
    kept; a name or an address that can't be shown is none."""
    if not isinstance(subject, str) or not 1 <= len(subject) <= _LONGEST_SUBJECT:
        raise NotBelieved(f"its subject is no text of 1 to {_LONGEST_SUBJECT} characters")
    address = _shown(email)
    names = (_shown(username), address.partition("@")[0])
    return Arrival(
        provider=provider,
        subject=subject,
        names=tuple(filter(None, names)),
        full_name=_shown(full_name),
        email=address if is_verified else "",
        groups=groups,
    )


def _shown(value: object) -> str:
    """ "" for what is no text, or can't be shown."""
    return value if isinstance(value, str) and len(value) <= 254 and not text.fault(value) else ""


def groups(listed: object, *, are_elsewhere: bool) -> frozenset[str]:
    """Raises NotBelieved for what names no groups, or not all: nobody loses their roles for a
    fault."""
    if are_elsewhere:
        raise NotBelieved("it has too many groups to name them: let it name those of Berth alone")
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise NotBelieved("its groups are no list of names")
    if len(listed) > _MOST_GROUPS:
        raise NotBelieved(f"it names more than {_MOST_GROUPS} groups")
    return frozenset(each for each in listed if each and len(each) <= MAX_GROUP)
