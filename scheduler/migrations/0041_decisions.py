"""Which plan was made of what is kept, whether this version reads it, and whether it is the newest
word on who waits."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0040_kept_room")]
    operations = [
        migrations.AddField(
            "cycleinput", "digest", models.CharField(db_default="", default="", max_length=64)
        ),
        migrations.AddField(
            "cycleinput", "schema", models.PositiveSmallIntegerField(db_default=0, default=0)
        ),
        migrations.AddField(
            "cycleinput", "outdated", models.BooleanField(db_default=False, default=False)
        ),
    ]
