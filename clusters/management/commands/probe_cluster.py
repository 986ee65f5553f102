"""`manage.py probe_cluster NAME`: what of all that Berth needs of a cluster works."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters import registry
from clusters.credential import BadCredential
from clusters.port import Verdict

_SHOWN = {Verdict.WORKS: "ok", Verdict.WARNING: "warning", Verdict.FAILS: "FAILED"}


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
        verdicts = []
        try:
            for step in port.probe():
                self.stdout.write(f"{_SHOWN[step.verdict]:<8} {step.name:<18} {step.said}")
                verdicts.append(step.verdict)
        finally:
            port.close()
        if failed := verdicts.count(Verdict.FAILS):
            raise CommandError(f"{failed} of {len(verdicts)} steps failed.")
