"""An ask keeps on which terms it was made. Those of before have their pool's."""

from django.db import migrations, models

_FILL = """
UPDATE scheduler_nodeask k
SET terms = jsonb_build_object(
    'selector', l.selector, 'request_class', l.request_class, 'parameters', l.parameters)
FROM clusters_nodepool l WHERE l.id = k.pool_id AND l.request_class <> ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0022_declared_pools"),
        ("scheduler", "0060_node_requests"),
    ]
    operations = [
        migrations.AddField(
            model_name="nodeask",
            name="terms",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.RunSQL(_FILL, migrations.RunSQL.noop),
    ]
