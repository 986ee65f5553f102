"""Triggers for what a constraint can't say: no cycles of tenants, no use over quota or without
one, a ledger that nobody edits and that agrees with itself."""

from django.db import migrations

# The recursion is cut at 100 levels, which no honest tree reaches: a deeper one is refused. The
# table's lock makes concurrent moves see each other, as two legal ones may make a cycle together.
NO_CYCLE = """
CREATE FUNCTION berth_tenant_no_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM berth_need_read_committed();
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
QUOTA = """
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
    PERFORM berth_need_read_committed();
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
CREATE TRIGGER quota_in_use_stays BEFORE UPDATE OF project_id, flavor_id ON tenants_quota
    FOR EACH ROW WHEN (OLD.used_milli > 0
                       AND (NEW.project_id, NEW.flavor_id) <> (OLD.project_id, OLD.flavor_id))
    EXECUTE FUNCTION berth_refuse('what is used stays with its project and flavor');
CREATE TRIGGER quota_in_use_is_kept BEFORE DELETE ON tenants_quota
    FOR EACH ROW WHEN (OLD.used_milli > 0)
    EXECUTE FUNCTION berth_refuse('what is used needs its quota');
"""

LEDGER = """
CREATE TRIGGER usage_append_only BEFORE UPDATE OR DELETE ON tenants_usageinterval
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
CREATE TRIGGER charge_append_only BEFORE UPDATE OR DELETE ON tenants_charge
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
CREATE TRIGGER rate_only_ends BEFORE UPDATE ON tenants_rate
    FOR EACH ROW WHEN (
        (NEW.flavor_id, NEW.cluster_id, NEW.price_per_hour, NEW.currency,
         lower(NEW.during), lower_inc(NEW.during)) IS DISTINCT FROM
        (OLD.flavor_id, OLD.cluster_id, OLD.price_per_hour, OLD.currency,
         lower(OLD.during), lower_inc(OLD.during)))
    EXECUTE FUNCTION berth_refuse('only the end of a price can change');
"""

# One query for all rows of a statement. Its plan is kept, so it may not be one that suited tables
# which were small, or a statement which was large: lookups by key cost the same ever after.
CHARGE = """
CREATE FUNCTION berth_charge_fits() RETURNS trigger LANGUAGE plpgsql
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
    wrong uuid;
BEGIN
    SELECT c.id INTO wrong FROM made c
      LEFT JOIN tenants_usageinterval u ON u.id = c.usage_id
      LEFT JOIN tenants_rate r ON r.id = c.rate_id
     WHERE (c.project_id, c.flavor_id, c.workload_id, c.flavor_id, c.currency) IS DISTINCT FROM
           (u.project_id, u.flavor_id, u.workload_id, r.flavor_id, r.currency)
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'charge % contradicts its usage or its rate', wrong
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER charge_fits AFTER INSERT ON tenants_charge
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION berth_charge_fits();
"""

# The usage's row is the lock that makes concurrent corrections see each other. An original has to
# be there, or two corrections could name each other.
CORRECTION = """
CREATE FUNCTION berth_correction_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named bigint;
    originals bigint;
    total numeric;
BEGIN
    PERFORM berth_need_read_committed();
    PERFORM 1 FROM tenants_usageinterval WHERE id = NEW.usage_id FOR NO KEY UPDATE;
    SELECT count(*) FILTER (WHERE id = NEW.corrects_id AND id <> NEW.id
                                  AND currency = NEW.currency),
           count(*) FILTER (WHERE corrects_id IS NULL), sum(amount)
      INTO named, originals, total FROM tenants_charge WHERE usage_id = NEW.usage_id;
    IF named = 0 OR originals = 0 THEN
        RAISE EXCEPTION 'charge % corrects none of its usage in its currency', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'correction_names_a_charge';
    END IF;
    IF total < 0 THEN
        RAISE EXCEPTION 'usage % would be charged % in sum', NEW.usage_id, total
            USING ERRCODE = 'check_violation', CONSTRAINT = 'charges_not_negative';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER correction_fits AFTER INSERT ON tenants_charge
    FOR EACH ROW WHEN (NEW.corrects_id IS NOT NULL) EXECUTE FUNCTION berth_correction_fits();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
        ("audit", "0002_append_only"),
        ("clusters", "0002_guards"),
    ]
    operations = [
        migrations.RunSQL(
            NO_CYCLE,
            "DROP TRIGGER tenant_no_cycle ON tenants_tenant; DROP FUNCTION berth_tenant_no_cycle();",
        ),
        migrations.RunSQL(
            QUOTA,
            "DROP TRIGGER quota_in_use_is_kept ON tenants_quota;"
            "DROP TRIGGER quota_in_use_stays ON tenants_quota;"
            "DROP TRIGGER quota_within_limits_on_insert ON tenants_quota;"
            "DROP TRIGGER quota_within_limits_on_update ON tenants_quota;"
            "DROP FUNCTION berth_quota_within_limits();",
        ),
        migrations.RunSQL(
            LEDGER,
            "DROP TRIGGER rate_only_ends ON tenants_rate;"
            "DROP TRIGGER charge_append_only ON tenants_charge;"
            "DROP TRIGGER usage_append_only ON tenants_usageinterval;",
        ),
        migrations.RunSQL(
            CHARGE,
            "DROP TRIGGER charge_fits ON tenants_charge; DROP FUNCTION berth_charge_fits();",
        ),
        migrations.RunSQL(
            CORRECTION,
            "DROP TRIGGER correction_fits ON tenants_charge;"
            "DROP FUNCTION berth_correction_fits();",
        ),
    ]
