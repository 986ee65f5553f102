"""The row; and clusters that were heard in this very database stay heard, as it is told now."""

from django.db import migrations

# As migration 0021 had it. What was heard in another is noticed by what is told now, too.
BEFORE = """
    SELECT s.system_identifier || '/' || c.timeline_id || '/'
           || pg_relation_filepath('clusters_cluster')
    FROM pg_control_system() s, pg_control_checkpoint() c
"""
NOW = """
    SELECT s.system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
           || '/' || coalesce((SELECT min(i.xmin::text) FROM clusters_imprint i), '')
    FROM pg_control_system() s
"""


class Migration(migrations.Migration):
    dependencies = [("clusters", "0023_imprint")]
    operations = [
        migrations.RunSQL(
            "INSERT INTO clusters_imprint DEFAULT VALUES", "DELETE FROM clusters_imprint"
        ),
        migrations.RunSQL(
            f"UPDATE clusters_cluster SET heard_in = ({NOW}) WHERE heard_in = ({BEFORE})",
            f"UPDATE clusters_cluster SET heard_in = ({BEFORE}) WHERE heard_in = ({NOW})",
        ),
    ]
