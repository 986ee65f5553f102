from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0065_told_of_work")]

    operations = [
        migrations.AddField(
            model_name="confinement",
            name="quotas",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
