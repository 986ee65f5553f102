"""`manage.py look_again NAME ...`, or `--all`: list clusters anew as after a restore."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters.models import Cluster
from clusters.services import restoring
from controlplane.kernel import clock


class Command(BaseCommand):
    """Has clusters listed anew as after a restore, for where the database does not show that it
    was put back: from a snapshot of its disk, say. Nothing starts in any cluster before they are
    listed, and what runs there and the database does not know is adopted or waited for. Say it
    before Berth is started, or at any time after."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", help="of the clusters")
        parser.add_argument("--all", action="store_true", help="every cluster")

    def handle(self, *_: Any, names: list[str], **options: Any) -> None:  # Any: Django's options
        if bool(names) == options["all"]:
            raise CommandError("Name the clusters, or say --all.")
        found = {cluster.name: cluster for cluster in Cluster.objects.order_by("name")}
        if unknown := sorted(set(names) - found.keys()):
            raise CommandError(f"There is no cluster {unknown[0]!r}.")
        for name in names or found:
            restoring.look_again(
                cluster=found[name], actor="system:operator", actor_name="operator", at=clock.now()
            )
            self.stdout.write(f"Nothing starts before {name} is listed.")
