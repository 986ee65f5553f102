"""`manage.py bootstrap`: an empty installation's root tenant and first person."""

import sys
from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.kernel import clock
from controlplane.kernel.errors import AppError
from tenants.services import bootstrap
from tenants.services.bootstrap import Beginning


class Command(BaseCommand):
    help = (
        "Make the root tenant and a first person who owns, operates and approves for the fleet."
        " The password is asked, or is the first line of the input. Again it changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organisation", required=True, help="the root tenant's name")
        parser.add_argument("--slug", required=True, help="its short name: a-z, 0-9 and -")
        parser.add_argument("--username", required=True, help="who signs in first")

    def handle(self, *, organisation: str, slug: str, username: str, **_: Any) -> None:
        # Any: Django's options
        wanted = Beginning(organisation=organisation.strip(), slug=slug, username=username)
        try:
            if bootstrap.is_done(wanted=wanted):
                self.stdout.write(f"{username} owns the fleet already; nothing to do.")
                return
            bootstrap.bootstrap(wanted=wanted, password=_password(), at=clock.now())
        except AppError as error:
            where = f"{error.pointer.lstrip('/')}: " if error.pointer else ""
            raise CommandError(f"{where}{error.message}") from error
        self.stdout.write(
            f"{username} owns, operates and approves for the fleet, and makes accounts at /admin/."
        )


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass("Password: ")
    if getpass("Again: ") != password:
        raise CommandError("The two passwords differ.")
    return password
