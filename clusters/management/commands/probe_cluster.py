"""`manage.py probe_cluster NAME`: what of all that Berth needs of a cluster works."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters import registry
from clusters.credential import BadCredential
from clusters.port import ProbeStep


class Command(BaseCommand):
    help = (
        "Try what Berth needs of a cluster, step by step; exit status 1 when a step fails. Run it"
        " where BERTH_OPEN_KEYS is set."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="as the cluster is registered")

    def handle(self, *_: Any, name: str, **__: Any) -> None:  # Any: Django's signature
        try:
            port = registry.connect(name)
        except BadCredential as error:
            raise CommandError(str(error)) from error
        steps = port.probe()
        port.close()
        for step in steps:
            self.stdout.write(f"{_verdict(step):<8} {step.name:<18} {step.said}")
        if failed := sum(not step.ok for step in steps):
            raise CommandError(f"{failed} of {len(steps)} steps failed.")


def _verdict(step: ProbeStep) -> str:
    if not step.ok:
        return "FAILED"
    return "warning" if step.warning else "ok"
