"""A workload's timeline is append-only."""

from django.db import migrations

EVENTS = """
CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON scheduler_workloadevent
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0002_initial"), ("audit", "0002_append_only")]
    operations = [
        migrations.RunSQL(EVENTS, "DROP TRIGGER event_append_only ON scheduler_workloadevent;")
    ]
