"""When a recut cordoned again, told the MIG manager, and saw it at work."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0051_recut")]

    operations = [
        migrations.AddField(
            "recut", name, models.DateTimeField(blank=True, null=True)
        )
        for name in ("cordoned_at", "said_at", "busy_at")
    ]
