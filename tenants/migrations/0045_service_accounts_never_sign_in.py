"""No row by which a person signs in is a service account's: no account at a provider, no address to
which a code or a link is sent, no second factor or key."""

from django.db import migrations

WAYS_IN = ("socialaccount_socialaccount", "account_emailaddress", "mfa_authenticator")

PERSONS = "".join(
    f"CREATE TRIGGER {table}_of_a_person BEFORE INSERT OR UPDATE OF user_id ON {table}"
    " FOR EACH ROW EXECUTE FUNCTION berth_by_a_person('user_id');\n"
    for table in WAYS_IN
)
UNDO = "".join(f"DROP TRIGGER {table}_of_a_person ON {table};\n" for table in WAYS_IN)


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0044_hard_budgets"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]

    operations = [migrations.RunSQL(PERSONS, UNDO)]
