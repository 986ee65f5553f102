"""Refuses any change of an audit row. The function serves the other append-only tables too."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION berth_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
END $$;
"""
TRIGGER = """
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit_auditevent
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION berth_refuse_change();"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER audit_append_only ON audit_auditevent;"),
    ]
