"""`manage.py seed_demo`: the demo's tenants, people, flavors, prices and quotas."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.demo import seed
from controlplane.kernel.clock import now


class Command(BaseCommand):
    help = "Make the demo's tenants, people, flavors, prices and quotas, where they are missing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tokens", help="write one API token a person to this file")

    def handle(self, *, tokens: str | None, **_: Any) -> None:  # Any: Django's options
        if not settings.BERTH_DEMO:
            raise CommandError("The demo's people have a known password: set BERTH_DEMO=1.")
        at = now()
        seed.seed(at=at)
        if tokens:
            seed.write_tokens(Path(tokens), at=at)
