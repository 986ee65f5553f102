"""What keeping room for work that has waited long left idle, as the loop has counted it
(`loop/recording/kept`)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Sum

from scheduler.core.held.losses import gpu_hours
from scheduler.models import KeptRoom, Workload

DAYS = 30


@dataclass(frozen=True, slots=True)
class Kept:
    """`workloads` that room was kept for in the last DAYS, and what stood idle for them since it
    first was, in thousandths of devices times seconds."""

    workloads: int
    idle_milli_s: int
    days: int = DAYS

    @property
    def idle(self) -> str:
        """In GPU-hours."""
        return gpu_hours(self.idle_milli_s)


def total_milli_s() -> int:
    """Since ever. One query."""
    total: int = KeptRoom.objects.aggregate(of=Sum("idle_milli_s", default=0))["of"]
    return total


def lately(*, at: datetime) -> Kept:
    """One query."""
    rows = KeptRoom.objects.filter(counted_at__gt=at - timedelta(days=DAYS))
    found = rows.aggregate(count=Count("id"), of=Sum("idle_milli_s", default=0))
    return Kept(found["count"], found["of"])


def of(workload: Workload) -> str:
    """In GPU-hours, "" where that is nothing. No query where `kept_room` was selected with it."""
    row: KeptRoom | None = getattr(workload, "kept_room", None)
    return gpu_hours(row.idle_milli_s) if row is not None and row.idle_milli_s else ""
