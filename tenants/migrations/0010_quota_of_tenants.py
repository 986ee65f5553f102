"""The law of quota over the whole tree of tenants, as the core has it (`scheduler/core/quota/quota.py`,
in whose words the functions below are written). Asked once a statement, however many rows it has."""

from importlib import import_module

from django.db import migrations

before = import_module("tenants.migrations.0004_own_quota_first")

# Of a tenant, or of the fleet where that is null: what it has of a flavor with all that is lent
# within it, what of that is used, and how much it does not lend to others. `within` are the tenants
# from it downwards as far as none has quota of its own: those lend and borrow all, so that what is
# below them counts as if it were here.
TREE = """
CREATE FUNCTION berth_quota_of_tenant(
    of_tenant uuid, of_flavor uuid, OUT capacity bigint, OUT used bigint, OUT kept bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    fleet CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    own tenants_tenantquota;
BEGIN
    WITH RECURSIVE tree AS (
        SELECT t.id, coalesce(t.parent_id, fleet) AS parent_id, q.id IS NOT NULL AS has_own
          FROM tenants_tenant t
          LEFT JOIN tenants_tenantquota q ON q.tenant_id = t.id AND q.flavor_id = of_flavor
    ), within AS (
        SELECT coalesce(of_tenant, fleet) AS id
        UNION ALL
        SELECT t.id FROM within w JOIN tree t ON t.parent_id = w.id WHERE NOT t.has_own
    )
    SELECT sum(c.capacity - c.kept), sum(greatest(0, c.used - c.kept)) INTO capacity, used FROM (
        SELECT q.nominal_milli, q.used_milli,
               greatest(0, q.nominal_milli - coalesce(q.lending_limit_milli, q.nominal_milli))
          FROM tenants_quota q JOIN tenants_project p ON p.id = q.project_id
         WHERE q.flavor_id = of_flavor AND p.tenant_id IN (SELECT id FROM within)
        UNION ALL
        SELECT below.* FROM within w JOIN tree t ON t.parent_id = w.id AND t.has_own
         CROSS JOIN LATERAL berth_quota_of_tenant(t.id, of_flavor) below
    ) c (capacity, used, kept);
    SELECT * INTO own FROM tenants_tenantquota
     WHERE tenant_id = of_tenant AND flavor_id = of_flavor;
    capacity := coalesce(capacity, 0) + coalesce(own.nominal_milli, 0);
    used := coalesce(used, 0);
    kept := greatest(0, capacity - coalesce(own.lending_limit_milli, capacity));
END $$;
"""

# P2. Only an increase is refused, so that a quota can be cut below its use. From the projects
# upwards, as far as their use counts: what is within the part that a member does not lend leaves
# those above as they are, even where they are over because a quota was cut elsewhere. The flavor's
# row is the lock that makes concurrent increases see each other.
LAW = """
DROP TRIGGER quota_within_limits_on_update ON tenants_quota;
DROP TRIGGER quota_within_limits_on_insert ON tenants_quota;
CREATE OR REPLACE FUNCTION berth_quota_within_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    grown uuid[];
    project tenants_quota;
    flavor uuid;
    member uuid;
    seen uuid[];
    reaches_fleet boolean;
    own tenants_tenantquota;
    capacity bigint;
    used bigint;
    kept bigint;
BEGIN
    IF TG_OP = 'INSERT' THEN
        grown := array(SELECT id FROM made WHERE used_milli > 0);
    ELSE
        grown := array(SELECT id FROM made JOIN was USING (id)
                        WHERE made.used_milli > was.used_milli);
    END IF;
    IF grown = '{}' THEN
        RETURN NULL;
    END IF;
    SELECT * INTO project FROM tenants_quota
     WHERE id = ANY(grown) AND used_milli > nominal_milli + borrowing_limit_milli LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'quota %: % used would pass % nominal + % borrowing',
            project.id, project.used_milli, project.nominal_milli, project.borrowing_limit_milli
            USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_limit';
    END IF;
    PERFORM berth_need_read_committed();
    FOR flavor IN SELECT DISTINCT flavor_id FROM tenants_quota WHERE id = ANY(grown) ORDER BY 1 LOOP
        PERFORM 1 FROM clusters_flavor WHERE id = flavor FOR NO KEY UPDATE;
        seen := '{}';
        reaches_fleet := false;
        FOR member IN SELECT DISTINCT p.tenant_id
              FROM tenants_quota q JOIN tenants_project p ON p.id = q.project_id
             WHERE q.id = ANY(grown) AND q.flavor_id = flavor
               AND q.used_milli > greatest(0, q.nominal_milli
                   - coalesce(q.lending_limit_milli, q.nominal_milli))
        LOOP
            WHILE member IS NOT NULL AND member <> ALL(seen) LOOP
                seen := seen || member;
                SELECT * INTO own FROM tenants_tenantquota
                 WHERE tenant_id = member AND flavor_id = flavor;
                IF FOUND THEN
                    SELECT * INTO capacity, used, kept FROM berth_quota_of_tenant(member, flavor);
                    IF used > capacity + own.borrowing_limit_milli THEN
                        RAISE EXCEPTION
                            'tenant %, flavor %: % used would pass its % + % borrowing',
                            member, flavor, used, capacity, own.borrowing_limit_milli
                            USING ERRCODE = 'check_violation',
                                  CONSTRAINT = 'quota_within_tenant';
                    END IF;
                    EXIT WHEN used <= kept;
                END IF;
                SELECT parent_id INTO member FROM tenants_tenant WHERE id = member;
            END LOOP;
            reaches_fleet := reaches_fleet OR member IS NULL;
        END LOOP;
        IF reaches_fleet THEN
            SELECT * INTO capacity, used, kept FROM berth_quota_of_tenant(NULL, flavor);
            IF used > capacity THEN
                RAISE EXCEPTION 'flavor %: % borrowed would pass the % that the fleet lends',
                    flavor, used, capacity
                    USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_fleet';
            END IF;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER quota_within_limits_on_update AFTER UPDATE ON tenants_quota
    REFERENCING OLD TABLE AS was NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION berth_quota_within_limits();
CREATE TRIGGER quota_within_limits_on_insert AFTER INSERT ON tenants_quota
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION berth_quota_within_limits();
"""
ROW_BY_ROW = (
    """
DROP TRIGGER quota_within_limits_on_update ON tenants_quota;
DROP TRIGGER quota_within_limits_on_insert ON tenants_quota;
"""
    + before.WITHIN_LIMIT
    + before.OWN
    + before.WITHIN_FLEET
    + """
CREATE CONSTRAINT TRIGGER quota_within_limits_on_update AFTER UPDATE OF used_milli ON tenants_quota
    FOR EACH ROW WHEN (NEW.used_milli > OLD.used_milli)
    EXECUTE FUNCTION berth_quota_within_limits();
CREATE CONSTRAINT TRIGGER quota_within_limits_on_insert AFTER INSERT ON tenants_quota
    FOR EACH ROW WHEN (NEW.used_milli > 0) EXECUTE FUNCTION berth_quota_within_limits();
"""
)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_tenant_quota")]
    operations = [
        migrations.RunSQL(TREE, "DROP FUNCTION berth_quota_of_tenant(uuid, uuid);"),
        migrations.RunSQL(LAW, ROW_BY_ROW),
    ]
