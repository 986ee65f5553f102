"""Finds the work that asks to be moved; built beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0027_move_to_better")]
    operations = [
        AddIndexConcurrently(
            "workload",
            models.Index(
                fields=["id"],
                condition=Q(move_to_better=True, state="RUNNING"),
                name="workload_moves_to_better",
            ),
        ),
    ]
