"""`manage.py defragment`: what could be moved in a cluster, and planning that for a window."""

from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from clusters.models import Cluster
from controlplane.kernel import clock
from controlplane.kernel.errors import AppError
from scheduler.core.moving.defragment import Proposal
from scheduler.core.units import ONE_MILLI
from scheduler.services import defragmentations

ACTOR, NAME = "system:command", "manage.py defragment"


class Command(BaseCommand):
    help = (
        "Show which preemptible work could be stopped in a cluster, to start again elsewhere at"
        " once, so that whole nodes and spans for slices are free. With --from and --until it is"
        " planned for the window: worked out anew then, and carried out within the budget."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name")
        parser.add_argument(
            "--budget-s",
            type=int,
            default=defragmentations.BUDGET_S,
            help="most work that may be lost, in seconds of a GPU (default %(default)s)",
        )
        parser.add_argument("--from", dest="starts_at", type=_time, help="2027-01-31T02:00Z")
        parser.add_argument("--until", dest="ends_at", type=_time, help="else an hour later")
        parser.add_argument("--call-off", action="store_true", help="the one that is planned")

    def handle(
        self,
        *,
        cluster: str,
        budget_s: int,
        starts_at: datetime | None,
        ends_at: datetime | None,
        call_off: bool,
        **_: Any,  # Any: Django's options
    ) -> None:
        row = Cluster.objects.filter(name=cluster).first()
        if row is None:
            raise CommandError(f"There is no cluster {cluster}.")
        at = clock.now()
        try:
            if call_off:
                defragmentations.call_off(cluster=row, actor=ACTOR, actor_name=NAME, at=at)
                self.stdout.write("Called off.")
                return
            self._tell(defragmentations.preview(cluster=row, budget_s=budget_s, at=at))
            if starts_at is None:
                return
            made = defragmentations.plan(
                cluster=row,
                budget_s=budget_s,
                starts_at=starts_at,
                ends_at=ends_at or starts_at + timedelta(hours=1),
                actor=ACTOR,
                actor_name=NAME,
                at=at,
            )
        except AppError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Planned from {made.starts_at:%F %R} to {made.ends_at:%F %R} UTC.")

    def _tell(self, made: Proposal) -> None:
        names = defragmentations.names(made)
        for step in made.steps:
            name = names.get(step.landing.workload, "")
            lost_s = -(-step.lost_milli_s // ONE_MILLI)
            self.stdout.write(f"{name} ({step.landing.workload}) moves and loses {lost_s} s")
        for what, before, after in (
            ("nodes with nothing on them", made.before.free_nodes, made.after.free_nodes),
            ("waiting slices with a span", made.before.slices, made.after.slices),
        ):
            self.stdout.write(f"{what}: {before}, then {after}")


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("say the time zone, such as 2027-01-31T02:00Z")
    return found
