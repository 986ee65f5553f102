"""Who gave which role: of those there are, what the audit tells of it."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Through whom a giver had become one is not known of before.
TOLD = """
UPDATE tenants_member m SET granted_by_id = u.id, granted_at = e.at, givers = ARRAY[u.id]
FROM audit_auditevent e JOIN tenants_user u ON e.actor = 'user:' || u.id
WHERE e.target_id = m.id AND e.action = 'member.grant';
"""
STAYS = """
CREATE TRIGGER member_giver_stays
    BEFORE UPDATE OF user_id, role, tenant_id, project_id, granted_by_id, granted_at, givers
    ON tenants_member
    FOR EACH ROW WHEN (
        (OLD.user_id, OLD.role, OLD.tenant_id, OLD.project_id, OLD.granted_by_id, OLD.granted_at,
         OLD.givers)
        IS DISTINCT FROM
        (NEW.user_id, NEW.role, NEW.tenant_id, NEW.project_id, NEW.granted_by_id, NEW.granted_at,
         NEW.givers)
    ) EXECUTE FUNCTION berth_refuse('a role is given once: take it back, and give another');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0006_by_tenant"),
        ("tenants", "0025_submit_policies"),
    ]
    operations = [
        migrations.AddField(
            model_name="member",
            name="granted_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="roles_given",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="member",
            name="granted_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="member",
            name="givers",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
        migrations.RunSQL(TOLD, migrations.RunSQL.noop),
        migrations.RunSQL(
            "SET CONSTRAINTS ALL IMMEDIATE;",  # or the table can't be altered: checks are to come
            migrations.RunSQL.noop,
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.CheckConstraint(
                condition=models.Q(("givers", []), ("granted_by__isnull", True))
                | models.Q(
                    ("givers__0", models.F("granted_by")),
                    ("givers__len__gte", 1),
                    ("granted_at__isnull", False),
                    ("granted_by__isnull", False),
                ),
                name="member_givers_whole",
            ),
        ),
        migrations.RunSQL(STAYS, "DROP TRIGGER member_giver_stays ON tenants_member;"),
    ]
