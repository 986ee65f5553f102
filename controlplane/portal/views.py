"""Signing in, by a password or by a provider, and out: Django's own views and allauth's flow, with
Berth's page and its limit of tries."""

import json
import logging
import math
from datetime import timedelta
from typing import Any

import requests
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.mfa.base.views import AuthenticateView
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.demo import logins
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm, no_fields
from controlplane.portal import providers
from tenants.models import User
from tenants.services import break_glass, sign_in

logger = logging.getLogger(__name__)


class Credentials(StrictForm, AuthenticationForm):
    """A name and a password that belong together."""

    beside = frozenset({"next"})
    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": "That name and password do not belong together. Both tell capital from "
        "small letters.",
    }

    def confirm_login_allowed(self, user: User) -> None:
        super().confirm_login_allowed(user)
        if not (settings.BERTH_PASSWORDS or user.is_break_glass):
            raise self.get_invalid_login_error()


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
        """In, or first to the second factor."""
        sign_in.give_back(**self.who)
        user = form.get_user()
        assert isinstance(user, User)  # noqa: S101  # AUTH_USER_MODEL
        if user.is_break_glass:
            break_glass.used(user=user, address=self.who["address"], at=clock.now())
        login = Login(user=user, redirect_url=self.get_success_url())
        answer: HttpResponse = perform_password_login(self.request, form.cleaned_data, login)
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_invalid(form)
        answer.status_code = 422
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:  # Any: as Django has it
        context = super().get_context_data(**kwargs)
        context["passwords"] = settings.BERTH_PASSWORDS
        context["providers"] = list(settings.BERTH_OIDC.values())
        if settings.BERTH_DEMO:
            context["demo_logins"] = [
                {"username": one.username, "password": logins.PASSWORD, "note": one.title}
                for one in logins.LOGINS
            ]
        return context


class SecondFactor(AuthenticateView):
    """Behind a password and a provider alike: a code, or one of the keys that they have."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:  # Any: as Django has it
        context: dict[str, Any] = super().get_context_data(**kwargs)
        options = context["js_data"]["request_options"]
        context["asked"] = json.dumps(options) if options["publicKey"]["allowCredentials"] else ""
        return context


@require_safe
@never_cache
def provider_sign_in(request: HttpRequest, provider: str) -> HttpResponse:
    """To the provider, and by its answer back. A link: a form that leads on to another host is
    what the content policy forbids."""
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    at = _at(request, provider)
    there = request.GET.get("next", "")
    here = {request.get_host()}
    safe = url_has_allowed_host_and_scheme(there, here, require_https=request.is_secure())
    try:
        answer: HttpResponse = at.redirect(
            request, AuthProcess.LOGIN, next_url=there if safe else None
        )
    except (requests.RequestException, OAuth2Error) as error:
        return providers.failed(request, at.app, error)
    return answer


@require_safe
@never_cache
def provider_back(request: HttpRequest, provider: str) -> HttpResponse:
    """Where a provider sends people who asked it to sign them in."""
    at = _at(request, provider)
    view = OAuth2CallbackView.adapter_view(providers.Exchange(request, provider))
    try:
        providers.check_sender(request, at)
        answer: HttpResponse = view(request)
    except (requests.RequestException, OAuth2Error) as error:
        return providers.failed(request, at.app, error)
    return answer


def _at(request: HttpRequest, provider: str) -> providers.AtProvider:
    try:
        return providers.Providers(request).get_provider(request, provider)
    except SocialApp.DoesNotExist:
        raise Http404("There is no such provider.") from None


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
