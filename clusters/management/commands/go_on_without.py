"""`manage.py go_on_without NAME`: after a restore, wait no longer for a cluster that is gone."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters.models import Cluster
from clusters.services import restoring
from controlplane.kernel import clock


class Command(BaseCommand):
    """Says that other clusters go on though this one was not listed since the database was put
    back from a backup. Work that the database has as waiting, and that runs there all the same,
    then runs twice: say it of a cluster that is gone."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of the cluster")

    def handle(self, *_: Any, name: str, **__: Any) -> None:  # Any: Django's options
        cluster = Cluster.objects.filter(name=name).first()
        if cluster is None:
            raise CommandError(f"There is no cluster {name!r}.")
        if not restoring.go_on_without(
            cluster=cluster, actor="system:operator", actor_name="operator", at=clock.now()
        ):
            raise CommandError(f"Nothing waits for {name}: it was listed since the last restore.")
        self.stdout.write(f"The others go on without {name}.")
