"""The ledger, and quotas in use, are not emptied by TRUNCATE either."""

from django.db import migrations

EMPTIED = """
CREATE TRIGGER usage_never_emptied BEFORE TRUNCATE ON tenants_usageinterval
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER charge_never_emptied BEFORE TRUNCATE ON tenants_charge
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
CREATE TRIGGER quota_never_emptied BEFORE TRUNCATE ON tenants_quota
    FOR EACH STATEMENT EXECUTE FUNCTION berth_refuse_truncate();
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_guards"), ("audit", "0003_never_emptied")]
    operations = [
        migrations.RunSQL(
            EMPTIED,
            "DROP TRIGGER quota_never_emptied ON tenants_quota;"
            "DROP TRIGGER charge_never_emptied ON tenants_charge;"
            "DROP TRIGGER usage_never_emptied ON tenants_usageinterval;",
        )
    ]
