"""What was metered before past use was kept is remembered too. The sums are those of
`tenants/services/past.py`."""

from django.db import migrations

REMEMBER = """
INSERT INTO tenants_pastuse (id, day, project_id, flavor_id, milli_s)
SELECT gen_random_uuid(), (lower(during) AT TIME ZONE 'UTC')::date, project_id, flavor_id,
       sum(amount_milli * (floor(extract(epoch FROM upper(during)))
                           - floor(extract(epoch FROM lower(during)))))::bigint
FROM tenants_usageinterval GROUP BY 2, 3, 4
HAVING sum(amount_milli * (floor(extract(epoch FROM upper(during)))
                           - floor(extract(epoch FROM lower(during))))) > 0
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_past_use")]
    operations = [migrations.RunSQL(REMEMBER, "DELETE FROM tenants_pastuse")]
