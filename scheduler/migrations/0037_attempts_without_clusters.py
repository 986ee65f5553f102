"""Attempts are not looked up by their cluster alone: most installations have few of those, and each
attempt was written to the index and, before its table was counted, read by it.

Beside the work that goes on, as in 0031.
"""

from importlib import import_module

from django.db import migrations, models

without_index = import_module("tenants.migrations.0018_fewer_indexes").without_index


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0036_turns")]
    operations = [
        without_index(
            "scheduler",
            "attempt",
            "cluster",
            "402100e4",
            "clusters.cluster",
            models.PROTECT,
            related_name="attempts",
        )
    ]
