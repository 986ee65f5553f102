"""Pod sets to which the flavors that they name are as welcome as each other (ADR 0068)."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0046_room_for_reasons")]

    operations = [
        migrations.AddField(
            "podset", "any_order", models.BooleanField(db_default=False, default=False)
        ),
        AddConstraintNotValid(
            "podset",
            models.CheckConstraint(
                condition=Q(any_order=False)
                | Q(as_preferred=False, least_memory_mib__isnull=True),
                name="pod_set_any_order_of_named",
            ),
        ),
    ]
