"""A placement's workload is that of its attempt, by `placement_fits`; neither changes, by
`placement_stays` and `attempt_stays`; and an attempt has a foreign key to its workload. A second one
of the placement asked the same again, for each of them (ADR 0065)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0044_as_preferred_index")]
    operations = [
        migrations.AlterField(
            "placement",
            "workload",
            models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="placements",
                to="scheduler.workload",
            ),
        )
    ]
