"""What is written often is written to few indexes; all changed beside the work that goes on.

Those go that begin another one, or by which nobody asks. Those that looked at what changes often
are made anew without it: a new version of a row on the page of the one before needs no entry in any
index, as long as nothing has changed that one of them looks at.
"""

from importlib import import_module

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

without_index = import_module("tenants.migrations.0018_fewer_indexes").without_index

LIVE = Q(ended_at__isnull=True)
OF_OURS = (
    ("attempt", "workload", "808bc0ea", "attempts"),
    ("estimate", "workload", "3e3dc2af", "estimates"),
    ("operation", "attempt", "2fff6547", "operations"),
    ("placement", "attempt", "ecda31b7", "placements"),
    ("placement", "pod_set", "da58cf8e", "placements"),
    ("podset", "workload", "3cd2aaaa", "pod_sets"),
    ("podsetflavor", "pod_set", "b94d83d6", "accepted"),
    ("workloadevent", "workload", "d08a2855", "events"),
)
OF_OTHERS = (
    ("placement", "flavor", "9127d7de", "clusters.flavor", "placements"),
    ("placement", "node", "de1d9e7a", "clusters.node", "placements"),
    ("placementspan", "device", "283adad2", "clusters.device", "spans"),
    ("workload", "project", "4e0de3d5", "tenants.project", "workloads"),
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0030_idleness_checked"), ("tenants", "0018_fewer_indexes")]
    operations = [
        AddIndexConcurrently(
            "workload", models.Index(fields=["id"], condition=LIVE, name="workload_not_ended")
        ),
        AddIndexConcurrently(
            "workload",
            models.Index(
                fields=["id"],
                condition=Q(move_to_better=True) & LIVE,
                name="workload_to_better",
            ),
        ),
        RemoveIndexConcurrently("workload", "workload_live"),
        RemoveIndexConcurrently("workload", "workload_moves_to_better"),
        RemoveIndexConcurrently("placement", "placement_unmetered"),
        *(
            without_index(
                "scheduler",
                model,
                name,
                number,
                f"scheduler.{name.replace('_', '')}",
                models.CASCADE,
                related_name=related_name,
            )
            for model, name, number, related_name in OF_OURS
        ),
        *(
            without_index("scheduler", *of, models.PROTECT, related_name=related_name)
            for *of, related_name in OF_OTHERS
        ),
    ]
