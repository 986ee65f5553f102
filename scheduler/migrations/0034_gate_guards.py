"""Triggers for gates: one is decided once, is of the project that its work is of, and lets nothing
be placed before it is open."""

from django.db import migrations

STAYS = """
CREATE TRIGGER gate_decided_once BEFORE UPDATE ON scheduler_gate
    FOR EACH ROW WHEN (OLD.state <> 'waiting')
    EXECUTE FUNCTION berth_refuse('a gate is decided once');
CREATE TRIGGER gate_kept BEFORE DELETE ON scheduler_gate
    FOR EACH ROW WHEN (OLD.state = 'waiting')
    EXECUTE FUNCTION berth_refuse('a gate that waits is not taken away');
CREATE TRIGGER gate_never_emptied BEFORE TRUNCATE ON scheduler_gate
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER gate_stays BEFORE UPDATE OF project_id, workload_id, array_id, name, kind, owner_id,
        standing, created_at, deadline_at ON scheduler_gate
    FOR EACH ROW WHEN (
        (NEW.project_id, NEW.workload_id, NEW.array_id, NEW.name, NEW.kind, NEW.owner_id,
         NEW.standing, NEW.created_at, NEW.deadline_at) IS DISTINCT FROM
        (OLD.project_id, OLD.workload_id, OLD.array_id, OLD.name, OLD.kind, OLD.owner_id,
         OLD.standing, OLD.created_at, OLD.deadline_at))
    EXECUTE FUNCTION berth_refuse('a gate stays as it was declared');
"""

FITS = """
CREATE FUNCTION berth_gate_fits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM scheduler_workload
                    WHERE id = NEW.workload_id AND project_id = NEW.project_id)
       AND NOT EXISTS (SELECT FROM scheduler_workloadarray
                        WHERE id = NEW.array_id AND project_id = NEW.project_id) THEN
        RAISE EXCEPTION 'gate %: its work is of another project', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    IF EXISTS (SELECT FROM scheduler_placement p JOIN scheduler_workload w ON w.id = p.workload_id
                WHERE w.id = NEW.workload_id OR w.array_id = NEW.array_id) THEN
        RAISE EXCEPTION 'gate %: its work was placed already', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER gate_fits BEFORE INSERT ON scheduler_gate
    FOR EACH ROW EXECUTE FUNCTION berth_gate_fits();
"""

# One query for all rows of a statement, by keys, as berth_placement_fits has it and why.
OPEN = """
CREATE FUNCTION berth_placement_gates_open() RETURNS trigger LANGUAGE plpgsql
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
    wrong uuid;
    shut text;
BEGIN
    SELECT m.id, g.name INTO wrong, shut FROM made m
      JOIN scheduler_workload w ON w.id = m.workload_id
      JOIN scheduler_gate g ON g.workload_id = w.id OR g.array_id = w.array_id
     WHERE g.state <> 'open' LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'placement %: the gate % of its work is not open', wrong, shut
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER placement_gates_open AFTER INSERT ON scheduler_placement
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION berth_placement_gates_open();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0033_gate"), ("clusters", "0002_guards")]
    operations = [
        migrations.RunSQL(
            STAYS,
            "DROP TRIGGER gate_never_emptied ON scheduler_gate;"
            "DROP TRIGGER gate_kept ON scheduler_gate;"
            "DROP TRIGGER gate_stays ON scheduler_gate;"
            "DROP TRIGGER gate_decided_once ON scheduler_gate;",
        ),
        migrations.RunSQL(
            FITS, "DROP TRIGGER gate_fits ON scheduler_gate; DROP FUNCTION berth_gate_fits();"
        ),
        migrations.RunSQL(
            OPEN,
            "DROP TRIGGER placement_gates_open ON scheduler_placement;"
            "DROP FUNCTION berth_placement_gates_open();",
        ),
    ]
