"""What finds failures by class, and the checks of what was there before; both beside the work that
goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0016_failures")]
    operations = [
        ValidateConstraint("attempt", "attempt_failure_known"),
        ValidateConstraint("attempt", "attempt_loses_at_a_bad_end"),
        ValidateConstraint("workload", "workload_retries_known"),
        ValidateConstraint("workload", "workload_grace_in_range"),
        ValidateConstraint("operation", "operation_kind_known"),
        AddIndexConcurrently(
            "attempt",
            models.Index(
                fields=["failure"],
                include=["lost_milli_s"],
                condition=~Q(failure="") | Q(lost_milli_s__gt=0),
                name="attempt_that_failed",
            ),
        ),
    ]
