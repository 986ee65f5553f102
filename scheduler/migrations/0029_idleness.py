"""Which attempts leave their devices unused, and that this is why one failed."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q

import controlplane.kernel.ids

CLASSES = [
    "out-of-memory", "run-time-limit", "idle", "start-error", "exit-code", "refused", "node-lost",
    "evicted",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("clusters", "0005_use_seen"), ("scheduler", "0028_move_to_better_index")]

    operations = [
        migrations.CreateModel(
            name="Idleness",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=controlplane.kernel.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("warned_at", models.DateTimeField(blank=True, null=True)),
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idleness",
                        to="scheduler.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(warned_at__isnull=True) | Q(warned_at__gte=F("since")),
                        name="idleness_told_of_after_it_began",
                    )
                ],
            },
        ),
        migrations.AlterField(
            "attempt",
            "failure",
            models.CharField(
                max_length=15, choices=[(each, each) for each in CLASSES], blank=True, db_default=""
            ),
        ),
        migrations.RemoveConstraint("attempt", "attempt_failure_known"),
        AddConstraintNotValid(
            "attempt",
            models.CheckConstraint(
                condition=Q(failure__in=["", *CLASSES]), name="attempt_failure_known"
            ),
        ),
        migrations.RemoveConstraint("workload", "workload_retries_known"),
        AddConstraintNotValid(
            "workload",
            models.CheckConstraint(
                condition=Q(retry_limit__lte=100)
                & Q(retry_on__contained_by=CLASSES)
                & Q(retry_exit_codes__len__lte=32),
                name="workload_retries_known",
            ),
        ),
    ]
