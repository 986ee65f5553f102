"""In which database a cluster was last heard, and since when this is another one (ADR 0090)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0020_exposure")]
    operations = [
        migrations.AddField(
            "cluster",
            "heard_in",
            models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField("cluster", "restored_at", models.DateTimeField(blank=True, null=True)),
    ]
