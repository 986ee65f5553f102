"""What a view reads of a request, and what it answers to a browser and to htmx: a page, one of its
fragments, or "unchanged".

What must not live here: who may see what (that is `tenants.access`), and any page.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from hashlib import blake2b
from typing import Any, Concatenate
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from controlplane.kernel.errors import AppError, Conflict, Invalid, NotAllowed, NotFound
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.throttle import TooOften

ZONE_COOKIE = "berth_tz"
"""Set by app.js: the browser's IANA time zone."""

type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponse]


def page[**P](*methods: str) -> Callable[[View[P]], View[P]]:
    """A view for signed-in users, in their own time zone, never cached.

    NotFound becomes the 404 page and NotAllowed the 403 page; what a view can say better it
    catches itself.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def wrapped(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            with timezone.override(_zone(request)):
                try:
                    return view(request, *args, **kwargs)
                except NotFound as error:
                    raise Http404(error.message) from error
                except NotAllowed as error:
                    raise PermissionDenied(error.message) from error

        guarded = require_http_methods(methods)(login_required(never_cache(wrapped)))
        return guarded

    return decorate


def _zone(request: HttpRequest) -> ZoneInfo:
    """The browser's zone, UTC when it is unknown or made up."""
    name = request.COOKIES.get(ZONE_COOKIE, "UTC")
    try:
        # Some keys are folders of the zone database, others try to leave it.
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return ZoneInfo("UTC")


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page."""
    return request.headers.get("HX-Request") == "true"


def id_in(query: QueryDict, name: str) -> UUID | None:
    """The id in a query parameter, None when it is left out. Raises NotFound for anything else."""
    value = query.get(name, "")
    try:
        return UUID(value) if value else None
    except ValueError:
        raise NotFound(f"{name} has to be an id.") from None


def minute(at: datetime) -> datetime:
    """Its minute: what ages on a page is shown anew once a minute."""
    return at.replace(second=0, microsecond=0)


def ten_seconds(at: datetime) -> datetime:
    """Its ten seconds: how often a page counts on what running work costs."""
    return at.replace(second=at.second // 10 * 10, microsecond=0)


def revision(*facts: object) -> str:
    """A short name of what a block shows; equal facts have equal names. Facts need a full repr."""
    return blake2b(repr(facts).encode(), digest_size=8).hexdigest()


def unchanged(request: HttpRequest, rev: str) -> HttpResponse | None:
    """204 when a poll (`?rev=`) has this revision on its page already, else None."""
    if is_fragment(request) and request.GET.get("rev") == rev:
        return HttpResponse(status=204)
    return None


def partial(
    request: HttpRequest,
    template: str,
    fragment: str,
    context: Mapping[str, Any],  # Any: what a template shows
    *,
    status: int = 200,
) -> HttpResponse:
    """The page, or that fragment of it when htmx asks. Both come from the one template."""
    name = f"{template}#{fragment}" if is_fragment(request) else template
    response = render(request, name, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def focus_fault(form: Form) -> bool:
    """Give the first field at fault the focus when the form shows again, with htmx or without.

    False when no field is: what is wrong stands above the form, and is to be focused there.
    """
    for name in form.fields:
        if name in form.errors:
            form.fields[name].widget.attrs["autofocus"] = True
            return True
    return False


def refusal(
    form: StrictForm, save: Callable[[], object], *, about: str | None = None
) -> int | None:
    """Save what was posted when it is valid, and a service takes it: None. Else the status of the
    page that shows the form again, which says what is wrong: 422, or 409 for what was done
    meanwhile, beside the field that this is `about`."""
    status = 422
    if form.is_valid():
        try:
            save()
        except Invalid as error:
            form.show(error.problems)
        except Conflict as error:
            form.add_error(about, error.message)
            status = 409
        else:
            return None
    focus_fault(form)
    return status


def refusal_status(error: AppError) -> int:
    """Of a page that tells why a service refused what was posted to it."""
    if isinstance(error, Conflict):
        return 409
    return 403 if isinstance(error, NotAllowed) else 422


def later(answer: HttpResponse, error: TooOften) -> HttpResponse:
    """It with when to ask again."""
    answer.headers["Retry-After"] = str(error.wait)
    return answer


def go(request: HttpRequest, url: str) -> HttpResponse:
    """To that page after a POST that worked: as htmx wants it, else a 303."""
    if is_fragment(request):
        return HttpResponseClientRedirect(url)
    return HttpResponseRedirect(url, status=303)
