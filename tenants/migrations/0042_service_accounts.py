"""Service accounts, and what keeps them from being persons: they sign in nowhere, have no role but
member and viewer of their own place, and ask for and decide nothing."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

STAYS = """
CREATE TRIGGER user_serves_for_good
    BEFORE UPDATE OF service_tenant_id, service_project_id, username, is_active ON tenants_user
    FOR EACH ROW WHEN (
        (OLD.service_tenant_id, OLD.service_project_id)
            IS DISTINCT FROM (NEW.service_tenant_id, NEW.service_project_id)
        OR (NEW.service_tenant_id IS NOT NULL OR NEW.service_project_id IS NOT NULL)
           AND (OLD.username <> NEW.username OR NEW.is_active AND NOT OLD.is_active)
    ) EXECUTE FUNCTION berth_refuse('a service account stays what it is, and closed');
"""
ROLES = """
CREATE FUNCTION berth_member_serves_its_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM tenants_user u WHERE u.id = NEW.user_id AND (
            u.service_tenant_id IS NULL AND u.service_project_id IS NULL
            OR NEW.role IN ('member', 'viewer') AND NEW.group_role_id IS NULL
               AND NEW.tenant_id IS NOT DISTINCT FROM u.service_tenant_id
               AND NEW.project_id IS NOT DISTINCT FROM u.service_project_id
        )
    ) THEN
        RAISE EXCEPTION 'a service account is a member or viewer of its own place, and no more'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER member_serves_its_place BEFORE INSERT OR UPDATE ON tenants_member
    FOR EACH ROW EXECUTE FUNCTION berth_member_serves_its_place();
"""
# Whoever is named in the columns that the trigger's arguments name has to be there before, as
# foreign keys are looked at later.
PERSONS = """
CREATE FUNCTION berth_by_a_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(TG_ARGV) named
        LEFT JOIN tenants_user u ON u.id = (to_jsonb(NEW) ->> named)::uuid
        WHERE to_jsonb(NEW) ->> named IS NOT NULL
          AND (u.id IS NULL OR u.service_tenant_id IS NOT NULL OR u.service_project_id IS NOT NULL)
    ) THEN
        RAISE EXCEPTION 'a service account is no person, and neither asks nor decides'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER quota_request_by_a_person
    BEFORE INSERT OR UPDATE OF requested_by_id, decided_by_id ON tenants_quotarequest
    FOR EACH ROW EXECUTE FUNCTION berth_by_a_person('requested_by_id', 'decided_by_id');
CREATE TRIGGER step_by_a_person BEFORE INSERT ON tenants_requeststep
    FOR EACH ROW EXECUTE FUNCTION berth_by_a_person('decided_by_id', 'on_behalf_of_id');
CREATE TRIGGER delegation_by_a_person BEFORE INSERT ON tenants_delegation
    FOR EACH ROW EXECUTE FUNCTION berth_by_a_person('approver_id', 'delegate_id');
CREATE TRIGGER standing_gate_of_a_person BEFORE INSERT OR UPDATE OF owner_id
    ON tenants_standinggate
    FOR EACH ROW EXECUTE FUNCTION berth_by_a_person('owner_id');
"""
UNDO = """
DROP TRIGGER standing_gate_of_a_person ON tenants_standinggate;
DROP TRIGGER delegation_by_a_person ON tenants_delegation;
DROP TRIGGER step_by_a_person ON tenants_requeststep;
DROP TRIGGER quota_request_by_a_person ON tenants_quotarequest;
DROP FUNCTION berth_by_a_person;
DROP TRIGGER member_serves_its_place ON tenants_member;
DROP FUNCTION berth_member_serves_its_place;
DROP TRIGGER user_serves_for_good ON tenants_user;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('tenants', '0041_channels'),
    ]

    operations = [
        migrations.AddField(
            model_name='token',
            name='made_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='tokens_made', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='user',
            name='service_project',
            field=models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='service_accounts', to='tenants.project'),
        ),
        migrations.AddField(
            model_name='user',
            name='service_tenant',
            field=models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='service_accounts', to='tenants.tenant'),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(('service_tenant__isnull', True), ('service_project__isnull', True), _connector='OR'), name='user_serves_one_place'),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(models.Q(('service_project__isnull', True), ('service_tenant__isnull', True)), models.Q(('username__startswith', 'service:'), _negated=True)), models.Q(models.Q(('service_project__isnull', True), ('service_tenant__isnull', True), _negated=True), ('username__startswith', 'service:')), _connector='OR'), name='user_called_what_it_is', violation_error_message='Only service accounts are called so.'),
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('service_project__isnull', True), ('service_tenant__isnull', True)), models.Q(('email', ''), ('is_break_glass', False), ('is_staff', False), ('is_superuser', False), ('password__startswith', '!')), _connector='OR'), name='user_who_serves_never_signs_in'),
        ),
        migrations.RunSQL(STAYS + ROLES + PERSONS, UNDO),
    ]
