"""Undone, what the older version can't say is put right: what is there for a time is taken away,
and who withdrew a request asks again."""

from django.db import migrations

BACK = """
UPDATE tenants_quota q SET version = version + 1,
       nominal_milli = greatest(0, q.nominal_milli - extra.milli)
FROM (SELECT r.project_id, r.flavor_id, sum(g.extra_milli) AS milli
      FROM tenants_grant g JOIN tenants_quotarequest r ON r.id = g.request_id
      WHERE g.begun_at IS NOT NULL AND g.ended_at IS NULL GROUP BY 1, 2) extra
WHERE q.project_id = extra.project_id AND q.flavor_id = extra.flavor_id AND extra.milli > 0;
UPDATE tenants_quotarequest SET decision = '', decided_by_id = NULL, decided_at = NULL
WHERE decision = 'withdrawn';
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0023_grants_that_end")]
    operations = [migrations.RunSQL(migrations.RunSQL.noop, BACK)]
