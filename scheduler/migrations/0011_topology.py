from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0010_checkpointed_at")]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="topology_level",
            field=models.CharField(blank=True, db_default="", default="", max_length=40),
        ),
        migrations.AddField(
            model_name="workload",
            name="topology_required",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddConstraint(
            model_name="workload",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("topology_required", False),
                    models.Q(("topology_level", ""), _negated=True),
                    _connector="OR",
                ),
                name="workload_required_level_named",
            ),
        ),
    ]
