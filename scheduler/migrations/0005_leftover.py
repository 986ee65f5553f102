"""What an ended attempt still has in its cluster, and when that is taken away."""

import django.contrib.postgres.operations
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0004_never_emptied")]
    operations = [
        migrations.AddField(
            "attempt",
            "leftover",
            models.CharField(
                max_length=7,
                choices=[("service", "Service"), ("pods", "Pods")],
                blank=True,
                db_default="",
            ),
        ),
        migrations.AddField(
            "attempt", "collect_at", models.DateTimeField(null=True, blank=True)
        ),
        django.contrib.postgres.operations.AddConstraintNotValid(
            "attempt",
            models.CheckConstraint(
                condition=Q(leftover="", collect_at__isnull=True)
                | Q(
                    leftover__in=["service", "pods"],
                    collect_at__isnull=False,
                    ended_at__isnull=False,
                ),
                name="attempt_collected_after_end",
            ),
        ),
    ]
