"""Pod sets that accept what their project prefers (ADR 0064)."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0042_decisions_index")]

    operations = [
        migrations.AddField(
            "podset", "as_preferred", models.BooleanField(db_default=False, default=False)
        ),
        AddConstraintNotValid(
            "podset",
            models.CheckConstraint(
                condition=Q(as_preferred=False) | Q(least_memory_mib__isnull=True),
                name="pod_set_wishes_or_as_preferred",
            ),
        ),
    ]
