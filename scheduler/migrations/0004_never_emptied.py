"""What was told, decided and held is not emptied by TRUNCATE either."""

from django.db import migrations

EMPTIED = """
CREATE TRIGGER event_never_emptied BEFORE TRUNCATE ON scheduler_workloadevent
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER lease_never_emptied BEFORE TRUNCATE ON scheduler_schedulerlease
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER placement_never_emptied BEFORE TRUNCATE ON scheduler_placement
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER span_never_emptied BEFORE TRUNCATE ON scheduler_placementspan
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0003_guards"), ("audit", "0003_never_emptied")]
    operations = [
        migrations.RunSQL(
            EMPTIED,
            "DROP TRIGGER span_never_emptied ON scheduler_placementspan;"
            "DROP TRIGGER placement_never_emptied ON scheduler_placement;"
            "DROP TRIGGER lease_never_emptied ON scheduler_schedulerlease;"
            "DROP TRIGGER event_never_emptied ON scheduler_workloadevent;",
        )
    ]
