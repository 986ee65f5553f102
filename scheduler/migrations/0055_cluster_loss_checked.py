"""Checks what was there before, and finds attempts that ended unseen; both beside the work that
goes on."""

from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0054_cluster_loss")]
    operations = [
        ValidateConstraint("workload", "workload_cluster_loss_in_range"),
        ValidateConstraint("attempt", "attempt_unseen_after_loss"),
        ValidateConstraint("attempt", "attempt_failure_known"),
        AddIndexConcurrently(
            "attempt",
            models.Index(
                fields=["cluster"],
                condition=Q(unseen_since__isnull=False),
                name="attempt_unseen",
            ),
        ),
    ]
