"""The rows from before there were chains become links of a thousand each, in the order of their
ids. What runs meanwhile writes to its own."""

from django.db import migrations

LINK = """
INSERT INTO audit_auditlink (id, chain, events, digests)
SELECT (array_agg(id ORDER BY id))[1], 0, array_agg(id ORDER BY id),
       string_agg(digest, '' ORDER BY id)
FROM (SELECT e.id, berth_audit_digest(e) AS digest,
             (row_number() OVER (ORDER BY e.id) - 1) / 1000 AS nth
      FROM audit_auditevent e
      LEFT JOIN (SELECT unnest(events) AS id FROM audit_auditlink) l ON l.id = e.id
      WHERE l.id IS NULL) old
GROUP BY nth ORDER BY nth
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_chain")]
    operations = [migrations.RunSQL(LINK, migrations.RunSQL.noop)]
