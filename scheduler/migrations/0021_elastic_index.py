"""Finds the work that may grow, and checks what was there before; both beside the work that goes
on."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0020_elastic")]
    operations = [
        ValidateConstraint("operation", "operation_kind_known"),
        AddIndexConcurrently(
            "podset",
            models.Index(
                fields=["workload"],
                condition=Q(min_count__lt=F("count")),
                name="pod_set_elastic",
            ),
        ),
    ]
