"""Finds the work that may grow; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0020_elastic")]
    operations = [
        AddIndexConcurrently(
            "podset",
            models.Index(
                fields=["workload"],
                condition=Q(min_count__lt=F("count")),
                name="pod_set_elastic",
            ),
        ),
    ]
