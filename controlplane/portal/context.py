"""What every page's shell shows, whichever view made the page."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from controlplane.api.auth import actor_of
from controlplane.kernel import clock
from controlplane.kernel.htmx import is_fragment
from tenants.selectors import requests as of_requests


def shell(request: HttpRequest) -> dict[str, Any]:  # Any: what templates show
    """`demo`, and `nav_counts`: badges of the sidebar by URL name. A fragment has no sidebar."""
    context: dict[str, Any] = {"demo": settings.BERTH_DEMO}
    user = getattr(request, "user", None)  # an error page may come before the login is known
    if user is not None and user.is_authenticated and not is_fragment(request):
        context["nav_counts"] = {
            "request-list": of_requests.to_decide_count(actor=actor_of(request), at=clock.now())
        }
    return context
