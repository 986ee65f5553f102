"""Signing in and out: Django's own views with Berth's page."""

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView

from controlplane.demo import logins


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
