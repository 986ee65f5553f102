"""Finds the pod sets that accept flavors without naming them, and checks what was there before;
both beside the work that goes on."""

from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0043_as_preferred")]
    operations = [
        ValidateConstraint("podset", "pod_set_wishes_or_as_preferred"),
        AddIndexConcurrently(
            "podset",
            models.Index(
                fields=["workload"],
                condition=Q(least_memory_mib__isnull=False) | Q(as_preferred=True),
                name="pod_set_unnamed",
            ),
        ),
        RemoveIndexConcurrently("podset", "pod_set_wish"),
    ]
