"""Triggers for what a constraint can't say: no cycles of tenants, no use over quota, no edited ledger."""

from django.db import migrations

# What both functions need: a snapshot taken before the lock doesn't show what others committed.
READ_COMMITTED = """
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION '% of % needs READ COMMITTED, not %',
            TG_OP, TG_TABLE_NAME, current_setting('transaction_isolation')
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
"""

# The recursion is cut at 100 levels, which no honest tree reaches: a deeper one is refused. The
# table's lock makes concurrent moves see each other, as two legal ones may make a cycle together.
NO_CYCLE = f"""
CREATE FUNCTION berth_tenant_no_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {READ_COMMITTED}
    PERFORM pg_advisory_xact_lock('tenants_tenant'::regclass::oid::bigint);
    IF EXISTS (
        WITH RECURSIVE up(id, depth) AS (
            SELECT NEW.parent_id, 1
            UNION ALL
            SELECT t.parent_id, up.depth + 1 FROM tenants_tenant t JOIN up ON t.id = up.id
            WHERE t.parent_id IS NOT NULL AND up.depth < 100
        ) SELECT 1 FROM up WHERE id = NEW.id OR depth = 100
    ) THEN
        RAISE EXCEPTION 'tenant % would be its own ancestor, or too deep', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'tenant_no_cycle';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER tenant_no_cycle AFTER INSERT OR UPDATE OF parent_id ON tenants_tenant
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION berth_tenant_no_cycle();
"""

# P2. Only an increase is refused, so that a quota can be cut below its use. What a project does not
# lend stays reserved for it: the fleet's claim on a flavor is sum(max(used, nominal - lent)). The
# flavor's row is the lock that makes concurrent increases see each other.
QUOTA = f"""
CREATE FUNCTION berth_quota_within_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    capacity bigint;
    claimed bigint;
BEGIN
    IF NEW.borrowing_limit_milli IS NOT NULL
       AND NEW.used_milli > NEW.nominal_milli + NEW.borrowing_limit_milli THEN
        RAISE EXCEPTION 'quota %: % used would pass % nominal + % borrowing',
            NEW.id, NEW.used_milli, NEW.nominal_milli, NEW.borrowing_limit_milli
            USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_limit';
    END IF;
    {READ_COMMITTED}
    PERFORM 1 FROM clusters_flavor WHERE id = NEW.flavor_id FOR NO KEY UPDATE;
    SELECT sum(nominal_milli),
           sum(greatest(used_milli, nominal_milli
                        - least(nominal_milli, coalesce(lending_limit_milli, nominal_milli))))
      INTO capacity, claimed FROM tenants_quota WHERE flavor_id = NEW.flavor_id;
    IF claimed > capacity THEN
        RAISE EXCEPTION 'flavor %: % claimed would pass the fleet''s % nominal',
            NEW.flavor_id, claimed, capacity
            USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_fleet';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER quota_within_limits_on_update AFTER UPDATE OF used_milli ON tenants_quota
    FOR EACH ROW WHEN (NEW.used_milli > OLD.used_milli)
    EXECUTE FUNCTION berth_quota_within_limits();
CREATE CONSTRAINT TRIGGER quota_within_limits_on_insert AFTER INSERT ON tenants_quota
    FOR EACH ROW WHEN (NEW.used_milli > 0) EXECUTE FUNCTION berth_quota_within_limits();
"""

LEDGER = """
CREATE TRIGGER usage_append_only BEFORE UPDATE OR DELETE ON tenants_usageinterval
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
CREATE TRIGGER charge_append_only BEFORE UPDATE OR DELETE ON tenants_charge
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial"), ("audit", "0002_append_only")]
    operations = [
        migrations.RunSQL(
            NO_CYCLE,
            "DROP TRIGGER tenant_no_cycle ON tenants_tenant; DROP FUNCTION berth_tenant_no_cycle();",
        ),
        migrations.RunSQL(
            QUOTA,
            "DROP TRIGGER quota_within_limits_on_insert ON tenants_quota;"
            "DROP TRIGGER quota_within_limits_on_update ON tenants_quota;"
            "DROP FUNCTION berth_quota_within_limits();",
        ),
        migrations.RunSQL(
            LEDGER,
            "DROP TRIGGER charge_append_only ON tenants_charge;"
            "DROP TRIGGER usage_append_only ON tenants_usageinterval;",
        ),
    ]
