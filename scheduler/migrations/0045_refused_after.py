"""What changes what stays is refused after the row is written instead of before, in the same
statement and by the same names.

Where a table has a trigger before each row, PostgreSQL locks the row first and writes that lock to
its log, for an update of any column, and whether or not the trigger asks for more: as much again as
a version that is written in place. The condition of a trigger after it is looked at without.
"""

import re
from importlib import import_module

from django.db import migrations

guards = import_module("scheduler.migrations.0003_guards")
element = import_module("scheduler.migrations.0013_element_fits")

BEFORE = [
    sql.replace("CREATE TRIGGER", "CREATE OR REPLACE TRIGGER")
    for sql in re.findall(r"CREATE TRIGGER [^;]+;", guards.WORKLOAD + guards.HELD + element.ELEMENT_FITS)
    if re.search(r" BEFORE (INSERT OR )?UPDATE ", sql)
]


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0044_as_preferred_index")]
    operations = [
        migrations.RunSQL(sql.replace(" BEFORE ", " AFTER "), sql) for sql in BEFORE
    ]
