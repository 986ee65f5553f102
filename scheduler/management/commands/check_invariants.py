"""`manage.py check_invariants`: derives the promises again from the base rows."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from scheduler.loop import invariants


class Command(BaseCommand):
    help = "Check what has to hold of the rows; exit status 1 and a sentence for each violation."

    def handle(self, **_: Any) -> None:  # Any: Django's options
        found = invariants.violations()
        for sentence in found:
            self.stderr.write(sentence)
        if found:
            sys.exit(1)
        self.stdout.write("Every promise holds.")
