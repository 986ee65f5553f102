"""`manage.py demo`: the whole of Berth on this machine.

What must not live here: more than arguments; the work is in controlplane/demo.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.demo.folder import Folder
from controlplane.demo.run import PROJECT, Demo
from controlplane.demo.terminal import Terminal
from controlplane.embedded.process import StartFailed


class Command(BaseCommand):
    help = "Start Berth, its servers and two simulated clusters; Ctrl-C stops all of it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=PROJECT / ".dev" / "demo", metavar="DIR")
        parser.add_argument("--port", type=int, help="of the web pages (8000, or a free one)")
        parser.add_argument("--reset", action="store_true", help="forget the data and start anew")

    def handle(self, *_: Any, **options: Any) -> None:  # Any: argparse's values
        terminal = Terminal(sys.stdout)
        try:
            folder = Folder.open(options["data"])
            if options["reset"]:
                folder.reset()
            Demo(folder=folder, terminal=terminal, port=options["port"]).until_stopped()
        except StartFailed as error:
            print(f"demo: {error.message}", file=sys.stderr)
            raise SystemExit(1) from None
