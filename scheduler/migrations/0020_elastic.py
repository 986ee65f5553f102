"""Pods that come and go while their gang runs (ADR 0026)."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0019_defragmentation")]

    operations = [
        migrations.AddField(
            model_name="placement",
            name="dismissed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RemoveConstraint(model_name="operation", name="operation_kind_known"),
        migrations.AlterField(
            model_name="operation",
            name="kind",
            field=models.CharField(
                choices=[("start", "Start"), ("stop", "Stop"), ("notice", "Notice"), ("resize", "Resize")],
                max_length=6,
            ),
        ),
        AddConstraintNotValid(
            "operation",
            models.CheckConstraint(
                condition=Q(("kind__in", ["start", "stop", "notice", "resize"])),
                name="operation_kind_known",
            ),
        ),
    ]
