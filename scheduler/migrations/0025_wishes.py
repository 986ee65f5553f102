"""Devices by what they have (ADR 0039)."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0024_losses_of_a_period")]

    operations = [
        migrations.AddField(
            model_name="podset",
            name="least_memory_mib",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="podset",
            name="vendors",
            field=ArrayField(
                models.CharField(max_length=10), blank=True, db_default=[], default=list, size=None
            ),
        ),
        AddConstraintNotValid(
            "podset",
            models.CheckConstraint(
                condition=(Q(least_memory_mib__isnull=True) & Q(vendors=[]))
                | Q(
                    least_memory_mib__isnull=False,
                    least_memory_mib__gte=0,
                    gpu_count__gte=1,
                    gpu_milli=1000,
                ),
                name="pod_set_wish_of_whole_devices",
            ),
        ),
        migrations.AddField(
            model_name="podsetflavor",
            name="wished",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="workload",
            name="asks_version",
            field=models.IntegerField(db_default=1, default=1),
        ),
    ]
