"""Whom a session may be of, and for how long: people alone, and no longer than a sign-in lasts,
whichever door they came by."""

from datetime import timedelta

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from controlplane.kernel import clock
from tenants.models import User


class People(ModelBackend):
    """Service accounts have no password and no provider; a session of one opens nothing either."""

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        is_service = isinstance(user, User) and user.is_service
        return not is_service and super().user_can_authenticate(user)


class SignedIn(DefaultAccountAdapter):
    """Django's sessions last anew with each page that writes into one, as that of a second factor
    does: who has left their institute could stay for good. These end when they were to."""

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        lasts = timedelta(seconds=settings.SESSION_COOKIE_AGE)
        request.session.set_expiry(clock.now() + lasts)
