"""`manage.py break_glass`: the account for the day on which nobody else gets in."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.kernel import clock
from controlplane.kernel.errors import AppError
from tenants.services import break_glass


class Command(BaseCommand):
    help = (
        "Make the break-glass account, or give it a new password and end its sessions. The"
        " password is printed, once: put it where two people have to open a safe."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="break-glass", help="of a new one")

    def handle(self, *, username: str, **_: Any) -> None:
        # Any: Django's options
        try:
            password = break_glass.make(username=username, at=clock.now())
        except AppError as error:
            raise CommandError(error.message) from error
        self.stdout.write(password)
