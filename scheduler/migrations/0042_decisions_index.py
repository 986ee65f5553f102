"""Finds the cycle of a moment; beside the work that goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0041_decisions")]
    operations = [
        AddIndexConcurrently("cyclerecord", models.Index(fields=["at"], name="cycle_by_moment"))
    ]
