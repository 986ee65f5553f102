"""Memory of a device, and isolation, asked of a pod set; and a trigger: nothing is placed on shares
that isolate less than its pod set and its project accept.

Not one transaction, so that what was there is checked beside the work that goes on.
"""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# One query for all rows of a statement, by keys, as berth_placement_fits has it and why. What
# isolates by hardware is enough for everybody.
ISOLATED = """
CREATE FUNCTION berth_isolation_rank(isolation text) RETURNS int LANGUAGE sql IMMUTABLE
    RETURN CASE isolation WHEN 'none' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END;
CREATE FUNCTION berth_placement_isolated() RETURNS trigger LANGUAGE plpgsql
    SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
    wrong uuid;
    given text;
BEGIN
    SELECT m.id, f.isolation INTO wrong, given FROM made m
      JOIN clusters_flavor f ON f.id = m.flavor_id AND f.isolation <> 'hardware'
      JOIN scheduler_podset s ON s.id = m.pod_set_id
      JOIN scheduler_workload w ON w.id = m.workload_id
      JOIN tenants_project p ON p.id = w.project_id
     WHERE berth_isolation_rank(f.isolation) <
           greatest(berth_isolation_rank(s.least_isolation),
                    berth_isolation_rank(p.least_isolation))
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'placement %: isolation % is less than is accepted', wrong, given
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER placement_isolated AFTER INSERT ON scheduler_placement
    REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION berth_placement_isolated();
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("clusters", "0005_use_seen"),
        ("scheduler", "0038_turns_checked"),
        ("tenants", "0020_least_isolation"),
    ]

    operations = [
        migrations.AddField(
            "podset", "gpu_memory_mib", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "podset",
            "least_isolation",
            models.CharField(
                choices=[("none", "None"), ("memory", "Memory"), ("hardware", "Hardware")],
                db_default="none",
                default="none",
                max_length=8,
            ),
        ),
        AddConstraintNotValid(
            "podset",
            models.CheckConstraint(
                condition=models.Q(
                    ("gpu_memory_mib__isnull", True),
                    models.Q(
                        ("gpu_count", 1),
                        ("gpu_memory_mib__gte", 1),
                        ("gpu_milli", 1000),
                        ("least_memory_mib__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="pod_set_memory_of_one_device",
            ),
        ),
        AddConstraintNotValid(
            "podset",
            models.CheckConstraint(
                condition=models.Q(("least_isolation__in", ["none", "memory", "hardware"])),
                name="pod_set_isolation_known",
            ),
        ),
        ValidateConstraint("podset", "pod_set_memory_of_one_device"),
        ValidateConstraint("podset", "pod_set_isolation_known"),
        migrations.RunSQL(
            ISOLATED,
            "DROP TRIGGER placement_isolated ON scheduler_placement;"
            "DROP FUNCTION berth_placement_isolated();"
            "DROP FUNCTION berth_isolation_rank(text);",
        ),
    ]
