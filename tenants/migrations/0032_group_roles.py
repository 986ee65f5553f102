import controlplane.kernel.ids
import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


GUARDS = """
CREATE TRIGGER group_role_never_changed BEFORE UPDATE ON tenants_grouprole
    FOR EACH ROW EXECUTE FUNCTION berth_refuse_change();
CREATE FUNCTION berth_member_as_its_group_role() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM tenants_grouprole g WHERE g.id = NEW.group_role_id AND g.role = NEW.role
           AND g.tenant_id IS NOT DISTINCT FROM NEW.tenant_id
           AND g.project_id IS NOT DISTINCT FROM NEW.project_id AND g.made_by_id <> NEW.user_id
    ) THEN
        RAISE EXCEPTION 'a role that came by a group is another, elsewhere, or of who made it so'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER member_as_its_group_role BEFORE INSERT OR UPDATE ON tenants_member
    FOR EACH ROW WHEN (NEW.group_role_id IS NOT NULL)
    EXECUTE FUNCTION berth_member_as_its_group_role();
"""
NO_GUARDS = """
DROP TRIGGER member_as_its_group_role ON tenants_member;
DROP FUNCTION berth_member_as_its_group_role;
DROP TRIGGER group_role_never_changed ON tenants_grouprole;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0002_append_only'),
        ('tenants', '0031_user_sessions'),
    ]

    operations = [
        migrations.CreateModel(
            name='GroupRole',
            fields=[
                ('id', models.UUIDField(default=controlplane.kernel.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('provider', models.CharField(max_length=20)),
                ('group', models.CharField(max_length=255)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('approver', 'Approver'), ('operator', 'Operator'), ('member', 'Member'), ('viewer', 'Viewer')], max_length=10)),
                ('made_at', models.DateTimeField()),
                ('givers', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), blank=True, db_default=[], default=list, size=None)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='member',
            name='member_role_once',
        ),
        migrations.AddField(
            model_name='user',
            name='left_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(('left_at__isnull', True), ('is_active', False), _connector='OR'), name='user_who_left_is_not_active'),
        ),
        migrations.AddField(
            model_name='grouprole',
            name='made_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='grouprole',
            name='project',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='group_roles', to='tenants.project'),
        ),
        migrations.AddField(
            model_name='grouprole',
            name='tenant',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='group_roles', to='tenants.tenant'),
        ),
        migrations.AddField(
            model_name='member',
            name='group_role',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='tenants.grouprole'),
        ),
        migrations.AddConstraint(
            model_name='member',
            constraint=models.UniqueConstraint(fields=('user', 'tenant', 'project', 'role', 'group_role'), name='member_role_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='grouprole',
            constraint=models.CheckConstraint(condition=models.Q(('tenant__isnull', True), ('project__isnull', True), _connector='OR'), name='group_role_of_one_scope'),
        ),
        migrations.AddConstraint(
            model_name='grouprole',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'approver', 'operator', 'member', 'viewer'])), name='group_role_role_known'),
        ),
        migrations.AddConstraint(
            model_name='grouprole',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('group', ''), _negated=True), models.Q(('provider', ''), _negated=True)), name='group_role_names_a_group'),
        ),
        migrations.AddConstraint(
            model_name='grouprole',
            constraint=models.UniqueConstraint(fields=('provider', 'group', 'tenant', 'project', 'role'), name='group_role_once', nulls_distinct=False),
        ),
        migrations.RunSQL(GUARDS, NO_GUARDS),
    ]
