"""An element is one of its array: in its project, and numbered below its size."""

from django.db import migrations

ELEMENT_FITS = """
CREATE FUNCTION berth_element_fits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM scheduler_workloadarray a
      WHERE a.id = NEW.array_id AND a.project_id = NEW.project_id AND NEW.array_index < a.size;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'workload %: it is no element of array %', NEW.id, NEW.array_id
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER element_fits BEFORE INSERT OR UPDATE OF array_id, array_index, project_id
    ON scheduler_workload FOR EACH ROW WHEN (NEW.array_id IS NOT NULL)
    EXECUTE FUNCTION berth_element_fits();
CREATE TRIGGER array_stays BEFORE UPDATE OF project_id, size ON scheduler_workloadarray
    FOR EACH ROW WHEN ((NEW.project_id, NEW.size) <> (OLD.project_id, OLD.size))
    EXECUTE FUNCTION berth_refuse('an array stays as it was submitted');
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0012_arrays"), ("clusters", "0002_guards")]
    operations = [
        migrations.RunSQL(
            ELEMENT_FITS,
            "DROP TRIGGER array_stays ON scheduler_workloadarray;"
            "DROP TRIGGER element_fits ON scheduler_workload; DROP FUNCTION berth_element_fits();",
        )
    ]
