"""What ended before anything was collected: its pods go an hour from now."""

from typing import Any

from django.db import migrations

BATCH = 10_000
# In key order, so that each batch begins where the last one ended.
_NEXT = """
WITH next AS (SELECT id FROM scheduler_attempt WHERE id > %s ORDER BY id LIMIT %s),
marked AS (
    UPDATE scheduler_attempt a
    SET leftover = 'pods', collect_at = clock_timestamp() + interval '1 hour'
    FROM next WHERE a.id = next.id AND a.ended_at IS NOT NULL AND a.leftover = '')
SELECT id FROM next ORDER BY id DESC LIMIT 1
"""


def mark(apps: Any, schema_editor: Any) -> None:  # Any: as Django calls it
    last = "00000000-0000-0000-0000-000000000000"
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(_NEXT, [last, BATCH])
            row = cursor.fetchone()
            if row is None:
                return
            last = row[0]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0006_leftover_index")]
    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
