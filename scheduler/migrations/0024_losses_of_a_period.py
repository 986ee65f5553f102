"""Finds what failed in a period without reading all of it; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0023_dependency_hold")]
    operations = [
        AddIndexConcurrently(
            "attempt",
            models.Index(
                fields=["ended_at"],
                include=["workload", "failure", "lost_milli_s"],
                condition=~Q(failure="") | Q(lost_milli_s__gt=0),
                name="attempt_failed_at",
            ),
        ),
    ]
