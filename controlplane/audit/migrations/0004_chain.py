"""Each statement's audit rows become a link of a chain (ADR 0099).

The place in the chain is given by the last of all triggers of the transaction, so that what a head
is locked for is the commit alone, and who waits for it holds nothing that its holder still wants:
deferred triggers run in the order of their events, and the one of the insert, which is among
others, only makes the event that comes after them all.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

import controlplane.kernel.ids

DIGEST = """
CREATE FUNCTION berth_audit_digest(event audit_auditevent) RETURNS bytea LANGUAGE sql STABLE
RETURN sha256(convert_to(json_build_array(
    event.id, to_char(event.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    event.actor, event.actor_name, event.action, event.target_type, event.target_id,
    event.tenant_id, event.project_id, event.before, event.after)::text, 'UTF8'));
"""
LINK = """
CREATE FUNCTION berth_link_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_auditlink (id, chain, events, digests)
    SELECT (array_agg(id ORDER BY id))[1], pg_backend_pid() % 16, array_agg(id ORDER BY id),
           string_agg(berth_audit_digest(added::audit_auditevent), '' ORDER BY id)
    FROM added HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_linked AFTER INSERT ON audit_auditevent REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION berth_link_audit();
"""
PLACE = """
CREATE FUNCTION berth_place_audit_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE head record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.position IS NOT NULL THEN
            RAISE EXCEPTION 'the database alone gives audit links their places'
                USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
        END IF;
        UPDATE audit_auditlink SET chain = chain WHERE id = NEW.id;
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(99, NEW.chain);
    SELECT position, digest INTO head FROM audit_auditlink
    WHERE chain = NEW.chain AND position IS NOT NULL ORDER BY position DESC LIMIT 1;
    UPDATE audit_auditlink SET position = coalesce(head.position, 0) + 1,
                               digest = sha256(coalesce(head.digest, '') || NEW.digests)
    WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER audit_link_placed AFTER INSERT OR UPDATE OF chain ON audit_auditlink
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION berth_place_audit_link();
"""
GUARDS = """
CREATE TRIGGER audit_link_append_only BEFORE UPDATE OR DELETE ON audit_auditlink
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION berth_refuse_change();
CREATE TRIGGER audit_link_never_emptied BEFORE TRUNCATE ON audit_auditlink
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_never_emptied")]
    operations = [
        migrations.CreateModel(
            name="AuditLink",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=controlplane.kernel.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("chain", models.SmallIntegerField()),
                ("position", models.BigIntegerField(null=True)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), size=None
                    ),
                ),
                ("digests", models.BinaryField()),
                ("digest", models.BinaryField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["chain", "position"], name="audit_link_place_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(position__isnull=True, digest__isnull=True)
                        | models.Q(position__isnull=False, digest__isnull=False),
                        name="audit_link_placed_whole",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            DIGEST + LINK + PLACE + GUARDS,
            """
            DROP TRIGGER audit_linked ON audit_auditevent;
            DROP TRIGGER audit_link_placed ON audit_auditlink;
            DROP TRIGGER audit_link_append_only ON audit_auditlink;
            DROP TRIGGER audit_link_never_emptied ON audit_auditlink;
            DROP FUNCTION berth_link_audit, berth_place_audit_link, berth_audit_digest;
            """,
        ),
    ]
