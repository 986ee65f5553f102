"""No row trigger sees a TRUNCATE, which empties a table at once: a trigger of its own refuses it. The
function serves the other tables too whose rows nobody may delete."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION berth_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% has rows that nobody may delete: TRUNCATE refused', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
END $$;
"""
TRIGGER = """
CREATE TRIGGER audit_never_emptied BEFORE TRUNCATE ON audit_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_append_only")]
    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION berth_refuse_truncate();"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER audit_never_emptied ON audit_auditevent;"),
    ]
