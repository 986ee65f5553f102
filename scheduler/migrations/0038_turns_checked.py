"""Checks what was there before, beside the work that goes on."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0037_attempts_without_clusters")]
    operations = [
        ValidateConstraint("podset", "pod_set_level_named"),
        ValidateConstraint("podset", "pod_set_in_whole_groups"),
        ValidateConstraint("workload", "workload_turn_whole"),
    ]
