"""A project with live work, or a tenant with such a project below it, stays where it is: what its
work holds is counted in the quotas, budgets and shares of the tenants above it."""

from django.db import migrations

# Whoever submits has the project's row, so that what is submitted meanwhile is seen.
STAYS = """
CREATE FUNCTION berth_live_work_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    within uuid[];
    busy uuid;
BEGIN
    PERFORM berth_need_read_committed();
    IF TG_TABLE_NAME = 'tenants_project' THEN
        within := ARRAY[OLD.id];
    ELSE
        WITH RECURSIVE below(id, depth) AS (
            SELECT OLD.id, 1
            UNION ALL
            SELECT t.id, below.depth + 1 FROM tenants_tenant t JOIN below ON t.parent_id = below.id
            WHERE below.depth < 100
        )
        SELECT array_agg(p.id) INTO within
          FROM tenants_project p JOIN below ON p.tenant_id = below.id;
        PERFORM 1 FROM tenants_project WHERE id = ANY(within) ORDER BY id FOR NO KEY UPDATE;
    END IF;
    SELECT project_id INTO busy FROM scheduler_workload
     WHERE project_id = ANY(within) AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'project % has live work, which stays in its tenant', busy
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER project_with_live_work_stays BEFORE UPDATE OF tenant_id ON tenants_project
    FOR EACH ROW WHEN (NEW.tenant_id <> OLD.tenant_id) EXECUTE FUNCTION berth_live_work_stays();
CREATE TRIGGER tenant_with_live_work_stays BEFORE UPDATE OF parent_id ON tenants_tenant
    FOR EACH ROW WHEN (NEW.parent_id IS DISTINCT FROM OLD.parent_id)
    EXECUTE FUNCTION berth_live_work_stays();
"""
UNDO = """
DROP TRIGGER tenant_with_live_work_stays ON tenants_tenant;
DROP TRIGGER project_with_live_work_stays ON tenants_project;
DROP FUNCTION berth_live_work_stays();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0062_pools_of_one_capacity"),
        ("tenants", "0024_grants_end_with_the_code"),
    ]

    operations = [migrations.RunSQL(STAYS, UNDO)]
