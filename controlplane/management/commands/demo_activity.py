"""`manage.py demo_activity`: submits work as the demo's people, until it is told to stop."""

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.demo import activity
from controlplane.kernel.clock import now


class Command(BaseCommand):
    help = "Submit work as the demo's people would, so that there is something to see."

    def handle(self, **_: Any) -> None:  # Any: Django's options
        if not settings.BERTH_DEMO:
            raise CommandError("This is for the demo only: set BERTH_DEMO=1.")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        activity.run(stop=stop, now=now)
