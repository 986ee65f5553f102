"""Signing in and out: Django's own views with Berth's page and its limit of tries."""

import logging
import math
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.demo import logins
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm, no_fields
from tenants.services import sign_in

logger = logging.getLogger(__name__)


class Credentials(StrictForm, AuthenticationForm):
    """A name and a password that belong together."""

    beside = frozenset({"next"})
    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "That name and password do not belong together. Both tell capital from "
        "small letters.",
    }


# Django's form views take a PUT for a POST.
@method_decorator(require_http_methods(["GET", "HEAD", "POST"]), name="dispatch")
class SignIn(LoginView):
    """Lists the demo's users only in the demo: elsewhere they don't exist."""

    template_name = "portal/login.html"
    authentication_form = Credentials
    redirect_authenticated_user = True

    @property
    def who(self) -> dict[str, str]:
        """Whose tries are counted."""
        return {
            "name": self.request.POST.get("username", ""),
            "address": self.request.META.get("REMOTE_ADDR", ""),
        }

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Any: as Django has it. 429 before the password is looked at, when it was tried too
        often."""
        wait = sign_in.take_try(**self.who, at=clock.now())
        if wait is not None:
            return self._too_often(wait)
        return super().post(request, *args, **kwargs)

    def _too_often(self, wait: timedelta) -> HttpResponse:
        logger.warning("too many tries to sign in, the last one from %s", self.who["address"])
        unbound = Credentials(self.request)  # a bound one would look at the password
        answer = self.render_to_response(self.get_context_data(form=unbound, wait=wait))
        answer.status_code = 429
        answer.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        sign_in.give_back(**self.who)
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_invalid(form)
        answer.status_code = 422
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:  # Any: as Django has it
        context = super().get_context_data(**kwargs)
        if settings.BERTH_DEMO:
            context["demo_logins"] = [
                {"username": one.username, "password": logins.PASSWORD, "note": one.title}
                for one in logins.LOGINS
            ]
        return context


class SignOut(LogoutView):
    """A button."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Any: as Django has it."""
        no_fields(request)
        return super().post(request, *args, **kwargs)


@require_safe
def back_office_sign_in(request: HttpRequest) -> HttpResponse:
    """Staff sign in where everybody does: there is one door to watch."""
    if request.user.is_authenticated:
        raise PermissionDenied("This is for staff.")
    return redirect_to_login(request.GET.get("next", reverse("admin:index")))
