"""Which flavors projects prefer, in order (ADR 0064)."""

import django.db.models.deletion
from django.db import migrations, models

import controlplane.kernel.ids


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0008_gpu_resource"),
        ("tenants", "0021_tenant_queue"),
    ]

    operations = [
        migrations.CreateModel(
            name="PreferredFlavor",
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
                ("position", models.PositiveSmallIntegerField()),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="clusters.flavor",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferred",
                        to="tenants.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "position"), name="preferred_position_once"
                    ),
                    models.UniqueConstraint(
                        fields=("project", "flavor"), name="preferred_flavor_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("position__lt", 16)),
                        name="preferred_position_in_range",
                    ),
                ],
            },
        ),
    ]
