"""Pages keep room for the next versions of their rows.

A version on the page of the one before needs no entry in any index, as long as nothing indexed has
changed: why a workload waits, who has claimed an attempt, that a pod's gate is open.
"""

from django.db import migrations

TABLES = ("scheduler_workload", "scheduler_attempt", "scheduler_placement")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0021_elastic_index")]
    operations = [
        migrations.RunSQL(
            "".join(f"ALTER TABLE {table} SET (fillfactor = 70);" for table in TABLES),
            "".join(f"ALTER TABLE {table} RESET (fillfactor);" for table in TABLES),
        )
    ]
