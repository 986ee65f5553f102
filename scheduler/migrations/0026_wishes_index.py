"""Finds the pod sets that have a wish, and checks what was there before; both beside the work that
goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0025_wishes")]
    operations = [
        ValidateConstraint("podset", "pod_set_wish_of_whole_devices"),
        AddIndexConcurrently(
            "podset",
            models.Index(
                fields=["workload"],
                condition=Q(least_memory_mib__isnull=False),
                name="pod_set_wish",
            ),
        ),
    ]
