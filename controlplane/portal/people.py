"""Whom a session may be of: people alone, whichever door they came by."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser

from tenants.models import User


class People(ModelBackend):
    """Service accounts have no password and no provider; a session of one opens nothing either."""

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        is_service = isinstance(user, User) and user.is_service
        return not is_service and super().user_can_authenticate(user)
