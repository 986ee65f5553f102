"""Pods that run and that nobody knows, after a database was put back from a backup (ADR 0090)."""

import controlplane.kernel.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0021_restored"), ("scheduler", "0058_attempt_choice")]
    operations = [
        migrations.AddField(
            "workload", "attempts_seen", models.PositiveIntegerField(db_default=0, default=0)
        ),
        migrations.CreateModel(
            "Stray",
            [
                (
                    "id",
                    models.UUIDField(
                        default=controlplane.kernel.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("namespace", models.CharField(max_length=253)),
                ("name", models.CharField(max_length=253)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("attempt", models.PositiveIntegerField()),
                ("why", models.CharField(max_length=200)),
                ("found_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="strays",
                        to="clusters.cluster",
                    ),
                ),
                (
                    "workload",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="strays",
                        to="scheduler.workload",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "uid"), name="stray_once")
                ],
            },
        ),
    ]
