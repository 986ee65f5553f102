"""A page keeps room for a next version of each row that is on it.

What was written by one statement lies on the same pages and changes by one statement: why they
wait, which pods they got, that those run. Of 20,000 workloads that each get a first reason, 4,800
found room on their page where 30 % of it was kept, 12,900 with 50 %, and 18,600 with 60 %, with
which the table is the smallest in the end.
"""

from django.db import migrations

TABLES = ("scheduler_workload", "scheduler_attempt", "scheduler_placement")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0031_fewer_indexes")]
    operations = [
        migrations.RunSQL(
            "".join(f"ALTER TABLE {table} SET (fillfactor = 40);" for table in TABLES),
            "".join(f"ALTER TABLE {table} SET (fillfactor = 70);" for table in TABLES),
        ),
    ]
