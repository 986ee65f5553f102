import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0008_invariantcheck")]

    operations = [
        migrations.AddField(
            model_name="cyclerecord",
            name="faults",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.CreateModel(
            name="CycleInput",
            fields=[
                (
                    "cycle",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DB_CASCADE,
                        primary_key=True,
                        related_name="input",
                        serialize=False,
                        to="scheduler.cyclerecord",
                    ),
                ),
                ("payload", models.BinaryField()),
                ("start_byte", models.BigIntegerField(db_index=True)),
            ],
        ),
    ]
