from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0009_cycle_inputs")]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="checkpointed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
