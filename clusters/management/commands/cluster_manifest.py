"""`manage.py cluster_manifest | kubectl apply -f -`: what Berth needs in a cluster."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters import registry


class Command(BaseCommand):
    """Prints a service account with only the rights that Berth uses, a policy of admission, and,
    as a comment, how to get a token of the account."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="berth", help="of the account and its role (berth)")
        parser.add_argument(
            "--token-hours", type=int, default=720, help="how long the token is good for (720)"
        )

    def handle(self, *_: Any, name: str, token_hours: int, **__: Any) -> None:  # Any: Django's
        try:
            self.stdout.write(registry.manifest(name=name, token_h=token_hours), ending="")
        except ValueError as error:
            raise CommandError(str(error)) from error
