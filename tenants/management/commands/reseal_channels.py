"""`manage.py reseal_channels`: seal every channel's address under the key in use."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.kernel.errors import Conflict, Unavailable
from tenants.services import channels


class Command(BaseCommand):
    help = (
        "Seal every channel's address and secret under BERTH_SEAL_KEY, as reseal_credentials does"
        " for clusters. Run it where BERTH_OPEN_KEYS is set, before the old key is dropped there."
    )

    def handle(self, *_: Any, **__: Any) -> None:  # Any: Django's signature
        try:
            resealed = channels.reseal()
        except (Conflict, Unavailable) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{resealed} sealed anew; all are under the key in use.")
