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
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.base.views import AuthenticateView
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.demo import logins
from controlplane.kernel import clock
from controlplane.kernel.forms import StrictForm, no_fields
from controlplane.portal import arriving, oidc, providers
from controlplane.portal.arriving import NotBelieved
from controlplane.settings.oidc import OpenIDConnect
from controlplane.settings.providers import Provider
from controlplane.settings.saml import Saml
from tenants.admin import password_told
from tenants.models import User
from tenants.services import break_glass, sign_in

logger = logging.getLogger(__name__)

_FAILURES = (requests.RequestException, OAuth2Error, NotBelieved)


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
        context["providers"] = list(settings.BERTH_PROVIDERS.values())
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
    except _FAILURES as error:
        return arriving.failed(request, at.app, error)
    return answer


@require_safe
@never_cache
def provider_back(request: HttpRequest, provider: str) -> HttpResponse:
    """Where a provider sends people who asked it to sign them in."""
    at = _at(request, provider, OpenIDConnect)
    view = OAuth2CallbackView.adapter_view(oidc.Exchange(request, provider))
    try:
        oidc.check_sender(request, at)
        answer: HttpResponse = view(request)
    except _FAILURES as error:
        return arriving.failed(request, at.app, error)
    return answer


@csrf_exempt  # it comes from the provider's page; what it has to be instead, `saml` says
@require_POST
@never_cache
def provider_answer(request: HttpRequest, provider: str) -> HttpResponse:
    """Where a SAML provider's page has a browser post who signed in there."""
    at = _at(request, provider, Saml)
    try:
        answer: HttpResponse = at.comes_back(request)
    except ImmediateHttpResponse as error:
        answer = error.response
    except _FAILURES as error:
        answer = arriving.failed(request, at.app, error)
    return answer


@require_safe
def provider_metadata(request: HttpRequest, provider: str) -> HttpResponse:
    """What a SAML provider's administrator needs of Berth."""
    told = _at(request, provider, Saml).metadata()
    return HttpResponse(told, content_type="application/samlmetadata+xml")


def _at(request: HttpRequest, provider: str, kind: type[object] = Provider) -> Any:
    """Any: allauth has no types."""
    if not isinstance(settings.BERTH_PROVIDERS.get(provider), kind):
        raise Http404("There is no such provider.")
    return providers.Providers(request).get_provider(request, provider)


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


def back_office_password(request: HttpRequest) -> HttpResponse:
    """Their own, in place of Django's page, which tells nobody."""
    # Read anew: the form changes the one of the request.
    before = User.objects.filter(username=request.user.get_username()).first()
    with password_told(request, before):
        return admin.site.password_change(request)
