"""`manage.py check_invariants`: looks for what breaks the rules about the base rows."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.kernel import clock
from controlplane.kernel.errors import Conflict
from scheduler.loop.checking import checks, invariants
from scheduler.loop.checking.rules import told


class Command(BaseCommand):
    help = (
        "Check what has to hold of the rows; exit status 1 and a sentence for each violation."
        " Some stop admission until a check finds nothing, or until they are accepted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--accept",
            action="store_true",
            help="let admission go on in spite of what is found now; what is new stops it again",
        )

    def handle(self, *, accept: bool, **_: Any) -> None:  # Any: Django's options
        made = checks.check(at=clock.now())
        others = invariants.SUBJECTS - checks.STOPPING
        found = [*made.violations, *told(invariants.violations(about=others))]
        for sentence in found:
            self.stderr.write(sentence)
        try:
            accepted = accept and checks.accept(at=clock.now())
        except Conflict as error:
            raise CommandError(error.message) from error
        if accepted:
            self.stdout.write("Accepted: admission goes on.")
        elif made.stops:
            self.stderr.write("Nothing new starts; --accept lets admission go on all the same.")
        if found:
            sys.exit(1)
        self.stdout.write("Every promise holds.")
