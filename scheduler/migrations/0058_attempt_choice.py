"""Why an attempt is in its cluster."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0057_node_ask_error")]
    operations = [
        migrations.AddField("attempt", "choice", models.JSONField(blank=True, null=True))
    ]
