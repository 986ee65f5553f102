"""What was called draining took nothing new and let run what ran: its queue is held, and its state
follows from its silence, as of the next minute."""

from django.db import migrations

_HOLD = """
INSERT INTO clusters_hardwarequeue
       (id, cluster_id, model, queue_state, queue_note, queue_changed_at, queue_changed_by)
SELECT gen_random_uuid(), id, '', 'held', 'An operator drained the cluster.', now(), 'migration'
FROM clusters_cluster WHERE state = 'draining';
UPDATE clusters_cluster SET state = CASE WHEN seen_at IS NULL THEN 'new' ELSE 'active' END
WHERE state = 'draining';
"""
_DRAIN = """
UPDATE clusters_cluster SET state = 'draining'
WHERE id IN (SELECT cluster_id FROM clusters_hardwarequeue
             WHERE model = '' AND queue_state <> 'open');
DELETE FROM clusters_hardwarequeue WHERE model = '';
"""


class Migration(migrations.Migration):
    dependencies = [("clusters", "0006_hardware_queue")]

    operations = [migrations.RunSQL(_HOLD, _DRAIN)]
