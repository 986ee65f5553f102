"""Why attempts failed, what they lost, what is tried again, and how work is stopped."""

import django.contrib.postgres.fields
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

import scheduler.models.workload

CLASSES = [
    "out-of-memory", "run-time-limit", "start-error", "exit-code", "refused", "node-lost",
    "evicted",
]  # fmt: skip
KINDS = [("start", "Start"), ("stop", "Stop"), ("notice", "Notice")]


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0015_landing")]
    operations = [
        migrations.AddField(
            "attempt",
            "failure",
            models.CharField(
                max_length=15, choices=[(each, each) for each in CLASSES], blank=True, db_default=""
            ),
        ),
        migrations.AddField(
            "attempt", "lost_milli_s", models.BigIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            "workload", "node_losses", models.PositiveSmallIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            "workload", "retry_limit", models.PositiveSmallIntegerField(default=4, db_default=4)
        ),
        migrations.AddField(
            "workload",
            "retry_on",
            django.contrib.postgres.fields.ArrayField(
                models.CharField(max_length=15),
                default=scheduler.models.workload.retried_by_default,
                db_default=["refused", "node-lost", "evicted"],
                blank=True,
            ),
        ),
        migrations.AddField(
            "workload",
            "retry_exit_codes",
            django.contrib.postgres.fields.ArrayField(
                models.PositiveSmallIntegerField(), default=list, db_default=[], blank=True
            ),
        ),
        AddConstraintNotValid(
            "attempt",
            models.CheckConstraint(
                condition=Q(failure__in=["", *CLASSES]), name="attempt_failure_known"
            ),
        ),
        AddConstraintNotValid(
            "attempt",
            models.CheckConstraint(
                condition=Q(lost_milli_s=0)
                | Q(lost_milli_s__gt=0, outcome__in=["failed", "preempted", "lost"]),
                name="attempt_loses_at_a_bad_end",
            ),
        ),
        AddConstraintNotValid(
            "workload",
            models.CheckConstraint(
                condition=Q(retry_limit__lte=100)
                & Q(retry_on__contained_by=CLASSES)
                & Q(retry_exit_codes__len__lte=32),
                name="workload_retries_known",
            ),
        ),
        migrations.AddField(
            "workload", "grace_s", models.PositiveSmallIntegerField(default=30, db_default=30)
        ),
        migrations.AddField(
            "workload", "notice_s", models.PositiveSmallIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            "workload", "notice_until", models.DateTimeField(null=True, blank=True)
        ),
        AddConstraintNotValid(
            "workload",
            models.CheckConstraint(
                condition=Q(grace_s__gte=1, grace_s__lte=3600, notice_s__lte=3600),
                name="workload_grace_in_range",
            ),
        ),
        migrations.RemoveConstraint("operation", "operation_kind_known"),
        migrations.AlterField(
            "operation", "kind", models.CharField(max_length=6, choices=KINDS)
        ),
        AddConstraintNotValid(
            "operation",
            models.CheckConstraint(
                condition=Q(kind__in=[kind for kind, _ in KINDS]), name="operation_kind_known"
            ),
        ),
    ]
