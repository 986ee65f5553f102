"""`manage.py simulate_cluster`: a simulated Kubernetes cluster on a port of loopback."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from clusters.simulator.server import add_arguments, run

_OPTIONS = ("name", "port", "layout", "nodes", "state", "speed", "start_delay")


class Command(BaseCommand):
    """Needs BERTH_SIMULATOR_TOKEN. `python -m clusters.simulator` is the same without Django."""

    help = __doc__
    requires_system_checks = ()  # it uses none of Berth's settings

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *_: Any, **options: Any) -> None:  # Any: Django's signature
        sys.exit(run({name: options[name] for name in _OPTIONS}))
