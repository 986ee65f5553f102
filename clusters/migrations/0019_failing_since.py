"""For how long a cluster has been asked in vain (ADR 0085)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("clusters", "0018_node_pools")]
    operations = [
        migrations.AddField(
            "cluster", "failing_since", models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField("cluster", "failed_at", models.DateTimeField(blank=True, null=True)),
    ]
