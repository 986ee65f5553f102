"""`manage.py cluster_manifest | kubectl apply -f -`: what Berth needs in a cluster."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters import registry
from clusters.parts import WHAT, Part
from controlplane.kernel.errors import AppError


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
            "--token-hours",
            type=int,
            default=registry.TOKEN_H,
            help=f"how long the token is good for ({registry.TOKEN_H})",
        )

        for part, what in WHAT.items():
            parser.add_argument(
                f"--{part}",
                action="append_const",
                dest="parts",
                const=part,
                help=f"let Berth {what}",
            )
        parser.add_argument(
            "--catch-url",
            metavar="URL",
            help="as --catch, where Kubernetes is 1.30 to 1.35: the cluster asks Berth itself, at"
            " this address of its web server, such as https://berth.example.org, whose host has to"
            " be in BERTH_ALLOWED_HOSTS",
        )
        parser.add_argument(
            "--catch-ca",
            metavar="FILE",
            type=Path,
            help="the certificate, as PEM, of the authority of that address, where the cluster"
            " does not trust it by itself",
        )

    def handle(  # Any: Django's signature
        self,
        *_: Any,
        user: str | None,
        token_hours: int,
        parts: list[Part] | None,
        catch_url: str | None,
        catch_ca: Path | None,
        **__: Any,
    ) -> None:
        if catch_ca is not None and catch_url is None:
            raise CommandError("--catch-ca is of an address that --catch-url names.")
        try:
            made = registry.manifest(
                user=user,
                token_h=token_hours,
                parts={*(parts or ()), *(() if catch_url is None else (Part.CATCH,))},
                catch_url=catch_url,
                catch_ca=None if catch_ca is None else catch_ca.read_text(),
            )
            self.stdout.write(made, ending="")
        except (AppError, OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
