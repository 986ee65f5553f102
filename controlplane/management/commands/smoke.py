"""`manage.py smoke`: starts Berth apart, does what a user would do, stops; exits with the verdict.

What must not live here: the steps (controlplane/demo/smoke.py).
"""

import os
import shutil
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from controlplane.demo.folder import Folder
from controlplane.demo.processes import Service, idle_table
from controlplane.demo.run import Demo
from controlplane.demo.terminal import Quiet
from controlplane.embedded.place import temporary
from controlplane.embedded.process import StartFailed, server_account

STEPS = "smoke"


class Command(BaseCommand):
    help = "Start Berth apart, submit work through its API, print the figures; 0 if all went well."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--steps",
            default="controlplane.demo.smoke",
            metavar="MODULE",
            help="what to run against it: called with the URL and the file of API tokens",
        )

    def handle(self, *_: Any, steps: str, **__: Any) -> None:  # Any: argparse's values
        terminal = Quiet(sys.stdout, steps=STEPS)
        status: int | None = 1
        scratch, lock = temporary("smoke", server_account())
        try:
            folder = Folder.open(scratch / "data")
            demo = Demo(folder=folder, terminal=terminal, port=0, tables=idle_table)
            command = (sys.executable, "-m", steps, demo.place.url, str(folder.tokens))
            status = demo.during(lambda: demo.run(Service(STEPS, command)))
        except StartFailed as error:
            print(f"smoke: {error.message}", file=sys.stderr)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            os.close(lock)
        if status != 0:
            terminal.show_kept()
            terminal.say("smoke failed")
            raise SystemExit(1)
        terminal.say("smoke passed")
