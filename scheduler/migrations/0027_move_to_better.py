"""Work that asks to be moved to a flavor that it prefers (ADR 0039)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0026_wishes_index")]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="move_to_better",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
