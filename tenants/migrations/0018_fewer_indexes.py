"""Of usage and charges: no index that begins another one, or by which nobody asks."""

from typing import Any

from django.conf import settings
from django.db import migrations, models


def without_index(
    app: str,
    model: str,
    name: str,
    number: str,
    *key: Any,  # Any: as a foreign key takes them
    **options: Any,  # Any: the same
) -> migrations.SeparateDatabaseAndState:
    """Drop the index of a foreign key beside the work that goes on. Django's own way locks the
    table and checks all its keys anew. `number` is how its name ends."""
    table = f"{app}_{model}"
    index = f"{table}_{name}_id_{number}"
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                f"DROP INDEX CONCURRENTLY IF EXISTS {index}",
                f"CREATE INDEX CONCURRENTLY {index} ON {table} ({name}_id)",
            )
        ],
        state_operations=[
            migrations.AlterField(model, name, models.ForeignKey(*key, db_index=False, **options))
        ],
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tenants", "0017_idle_limits"), ("clusters", "0005_use_seen")]
    operations = [
        without_index("tenants", *of, models.PROTECT, related_name=related_name)
        for *of, related_name in (
            ("usageinterval", "cluster", "60799b97", "clusters.cluster", "usage"),
            ("usageinterval", "user", "34cd11f1", settings.AUTH_USER_MODEL, "usage"),
            ("charge", "project", "132d62b7", "tenants.project", "charges"),
            ("charge", "rate", "205ef5ae", "tenants.rate", "charges"),
        )
    ]
