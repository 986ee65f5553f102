"""Finds what is to be collected; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0005_leftover")]
    operations = [
        ValidateConstraint("attempt", "attempt_collected_after_end"),
        AddIndexConcurrently(
            "attempt",
            models.Index(
                fields=["cluster", "collect_at"],
                condition=Q(collect_at__isnull=False),
                name="attempt_to_collect",
            ),
        ),
    ]
