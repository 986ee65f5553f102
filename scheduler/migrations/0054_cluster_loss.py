"""Work that starts elsewhere when its cluster is lost, and attempts that ended unseen (ADR 0085)."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

CLASSES = [
    "out-of-memory",
    "run-time-limit",
    "idle",
    "start-error",
    "exit-code",
    "refused",
    "node-lost",
    "evicted",
]


def known(classes: list[str]) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(failure__in=["", *classes]), name="attempt_failure_known"
    )


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0053_node_asks")]

    operations = [
        migrations.AddField(
            "workload",
            "cluster_loss_requeue_s",
            models.PositiveIntegerField(blank=True, null=True),
        ),
        AddConstraintNotValid(
            "workload",
            models.CheckConstraint(
                condition=Q(cluster_loss_requeue_s__range=(600, 604800)),
                name="workload_cluster_loss_in_range",
            ),
        ),
        migrations.AddField(
            "attempt", "unseen_since", models.DateTimeField(blank=True, null=True)
        ),
        AddConstraintNotValid(
            "attempt",
            models.CheckConstraint(
                condition=Q(unseen_since__isnull=True)
                | Q(ended_at__isnull=False, failure="cluster-lost"),
                name="attempt_unseen_after_loss",
            ),
        ),
        migrations.AlterField(
            "attempt",
            "failure",
            models.CharField(
                blank=True,
                choices=[(each, each) for each in [*CLASSES, "cluster-lost"]],
                db_default="",
                max_length=15,
            ),
        ),
        migrations.RemoveConstraint("attempt", "attempt_failure_known"),
        AddConstraintNotValid("attempt", known([*CLASSES, "cluster-lost"])),
    ]
