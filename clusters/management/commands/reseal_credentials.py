"""`manage.py reseal_credentials`: seal every cluster's credential under the key in use."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clusters.credential import BadCredential
from clusters.services import credentials
from controlplane.kernel.errors import Conflict, Unavailable


class Command(BaseCommand):
    help = (
        "Seal every cluster's credential under BERTH_SEAL_KEY. Run it where BERTH_OPEN_KEYS is"
        " set; a key under which nothing is sealed any more can be dropped from there afterwards."
    )

    def handle(self, *_: Any, **__: Any) -> None:  # Any: Django's signature
        try:
            resealed = credentials.reseal()
        except (BadCredential, Conflict, Unavailable) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{resealed} sealed anew; all are under the key in use.")
