"""Checks what was there before, beside the work that goes on."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0029_idleness")]
    operations = [
        ValidateConstraint("attempt", "attempt_failure_known"),
        ValidateConstraint("workload", "workload_retries_known"),
    ]
