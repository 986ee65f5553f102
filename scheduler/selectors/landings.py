"""Rows → landings: where who was moved, or has others moved for it, starts next."""

from contextlib import suppress

from scheduler.core import wire
from scheduler.core.plan import Landing
from scheduler.models import Landing as Row


def landings() -> tuple[Landing, ...]:
    """All of them, by workload, but for what another version has written and this one can't
    read."""
    rows = Row.objects.order_by("workload_id").values_list(
        "workload_id", "cluster_id", "places", "since"
    )
    found = []
    for workload, cluster, places, since in rows:
        value = {
            "workload": str(workload),
            "cluster": str(cluster),
            "places": places,
            "since": int(since.timestamp()),
        }
        with suppress(wire.Unreadable):
            found.append(wire.read(Landing, value))
    return tuple(found)
