"""What keeping room for work that has waited long left idle."""

from django.db import models
from django.db.models import Q

from controlplane.kernel.models import Row
from scheduler.models.workload import Workload


class KeptRoom(Row):
    """Of one workload: `idle_milli` thousandths of devices stood free and kept for it as of the
    cycle at `counted_at`, 0 once nothing is; `idle_milli_s` sums that up over all cycles before,
    in thousandths of a device times seconds. `loop/recording/kept` says what is counted."""

    workload = models.OneToOneField(Workload, on_delete=models.PROTECT, related_name="kept_room")
    counted_at = models.DateTimeField()
    idle_milli = models.BigIntegerField()
    idle_milli_s = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(idle_milli__gte=0, idle_milli_s__gte=0),
                name="kept_room_not_negative",
            )
        ]
        indexes = [
            models.Index(fields=["counted_at"], name="kept_room_counted"),
            models.Index(
                fields=["workload"], condition=Q(idle_milli__gt=0), name="kept_room_idle"
            ),
        ]

    access_path = "workload__project"

    def __str__(self) -> str:
        return f"{self.idle_milli} kept for {self.workload_id}"
