"""`manage.py check_invariants`: derives the promises again from the base rows."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from controlplane.kernel import clock
from scheduler.loop import checks, invariants


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
        others = invariants.PROMISES - checks.STOPPING
        found = [*made.violations, *invariants.violations(of=others)]
        for sentence in found:
            self.stderr.write(sentence)
        if accept and checks.accept(at=clock.now()):
            self.stdout.write("Accepted: admission goes on.")
        elif made.stops:
            self.stderr.write("Nothing new starts; --accept lets admission go on all the same.")
        if found:
            sys.exit(1)
        self.stdout.write("Every promise holds.")
