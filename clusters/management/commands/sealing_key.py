"""`manage.py sealing_key`: a fresh pair of keys, as two lines of an environment."""

from typing import Any

from django.core.management.base import BaseCommand

from clusters.sealing import PrivateKey


class Command(BaseCommand):
    help = (
        "Print a fresh pair: BERTH_SEAL_KEY for every process, BERTH_OPEN_KEYS for the dispatch"
        " workers and the watcher alone. Nothing is stored."
    )

    def handle(self, *_: Any, **__: Any) -> None:  # Any: Django's signature
        key = PrivateKey.fresh()
        self.stdout.write(f"BERTH_SEAL_KEY={key.public.text}")
        self.stdout.write(f"BERTH_OPEN_KEYS={key.text}")
