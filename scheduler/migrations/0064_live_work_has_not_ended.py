"""What work is live is said by `ended_at` in the trigger that keeps it in its tenant, as it is
everywhere else; `workload_ended_iff_terminal` holds the two alike."""

from importlib import import_module

from django.db import migrations

stays = import_module("scheduler.migrations.0063_live_work_stays")

BY_STATE = stays.STAYS.partition("CREATE TRIGGER")[0].replace("CREATE", "CREATE OR REPLACE")
BY_END = BY_STATE.replace(
    "state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')", "ended_at IS NULL"
)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0063_live_work_stays")]

    operations = [migrations.RunSQL(BY_END, BY_STATE)]
