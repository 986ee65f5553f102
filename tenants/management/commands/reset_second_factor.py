"""`manage.py reset_second_factor`: for who lost their app, and the codes for that day."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from controlplane.audit import services as audit
from controlplane.audit.services import Entry
from controlplane.kernel import clock
from tenants.models import User
from tenants.services import sessions

_ACTOR, _NAME = "system:command", "command"


class Command(BaseCommand):
    help = "Take the second factor from somebody and end their sessions; they set up a new one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *, username: str, **_: Any) -> None:
        # Any: Django's options
        at = clock.now()
        with transaction.atomic():
            user = User.objects.filter(username=username).first()
            if user is None:
                raise CommandError(f"There is no user {username!r}.")
            deleted, _by_model = Authenticator.objects.filter(user=user).delete()
            if not deleted:
                raise CommandError(f"{username} has no second factor.")
            sessions.end_of(user=user, by=_ACTOR, name=_NAME, at=at)
            entry = Entry("second-factor.reset", "user", user.id)
            audit.record(actor=_ACTOR, actor_name=_NAME, entries=[entry], at=at)
        self.stdout.write(f"{username} signs in without one, and sets up a new one.")
