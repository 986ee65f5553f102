"""`manage.py cluster_manifest | kubectl apply -f -`: what Berth needs in a cluster."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters import registry


class Command(BaseCommand):
    """Prints a service account with only the rights that Berth uses, a policy of admission, and,
    as a comment, how to get a token of the account; or the same for a user of the cluster."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        who = parser.add_mutually_exclusive_group()
        who.add_argument(
            "--user",
            help="whom Berth signs in as where it is no account that this makes: of a client"
            " certificate its common name, else what `kubectl auth whoami` says",
        )
        who.add_argument(
            "--token-hours", type=int, default=720, help="how long the token is good for (720)"
        )
        parser.add_argument(
            "--catch",
            action="store_true",
            help="have pods that others make in projects' namespaces, with the queue label or"
            " asking for a device, wait in Berth's queue (Kubernetes 1.36 or newer)",
        )

    def handle(  # Any: Django's signature
        self, *_: Any, user: str | None, token_hours: int, catch: bool, **__: Any
    ) -> None:
        try:
            said = registry.manifest(user=user, token_h=token_hours, catch=catch)
            self.stdout.write(said, ending="")
        except ValueError as error:
            raise CommandError(str(error)) from error
