"""Signing in and out: Django's own views with Berth's page."""

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_http_methods

from controlplane.demo import logins


# Django's form views take a PUT for a POST.
@method_decorator(require_http_methods(["GET", "HEAD", "POST"]), name="dispatch")
class SignIn(LoginView):
    """Lists the demo's users only in the demo: elsewhere they don't exist."""

    template_name = "portal/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:  # Any: as Django has it
        context = super().get_context_data(**kwargs)
        if settings.BERTH_DEMO:
            context["demo_logins"] = [
                {"username": one.username, "password": logins.PASSWORD, "note": one.title}
                for one in logins.LOGINS
            ]
        return context
