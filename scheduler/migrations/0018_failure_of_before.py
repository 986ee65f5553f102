"""What the cluster had broken, and has not ended yet, was not told by its class."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0017_failure_index")]
    operations = [
        migrations.RunSQL(
            "UPDATE scheduler_attempt SET failure = 'evicted'"
            " WHERE ended_at IS NULL AND trouble <> '' AND failure = ''",
            migrations.RunSQL.noop,
        )
    ]
