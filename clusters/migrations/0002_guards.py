"""Functions that the triggers of all apps share, and: a node stays in its cluster."""

from django.db import migrations

# The condition is in each trigger's WHEN, so that a legal row costs no call.
REFUSE = """
CREATE FUNCTION berth_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % %: %', TG_OP, TG_TABLE_NAME, to_jsonb(OLD)->>'id', TG_ARGV[0]
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
END $$;
"""

# For checks of what other transactions do: a snapshot taken before a lock doesn't show what they
# committed.
READ_COMMITTED = """
CREATE FUNCTION berth_need_read_committed() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'this needs READ COMMITTED, not %',
            current_setting('transaction_isolation')
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
END $$;
"""

NODE = """
CREATE TRIGGER node_stays BEFORE UPDATE OF cluster_id ON clusters_node
    FOR EACH ROW WHEN (NEW.cluster_id <> OLD.cluster_id)
    EXECUTE FUNCTION berth_refuse('a node stays in its cluster');
"""


class Migration(migrations.Migration):
    dependencies = [("clusters", "0001_initial")]
    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION berth_refuse();"),
        migrations.RunSQL(READ_COMMITTED, "DROP FUNCTION berth_need_read_committed();"),
        migrations.RunSQL(NODE, "DROP TRIGGER node_stays ON clusters_node;"),
    ]
