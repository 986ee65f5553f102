"""Why a cluster did not take what it was asked for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0056_inspection")]
    operations = [
        migrations.AddField(
            "nodeask",
            "error",
            models.CharField(blank=True, db_default="", max_length=200),
        )
    ]
