"""A table of what all processes have to know for a moment, as `createcachetable` makes it."""

from django.db import migrations

TABLE = """
CREATE TABLE berth_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX berth_cache_expires ON berth_cache (expires);
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0032_group_roles")]
    operations = [migrations.RunSQL(TABLE, "DROP TABLE berth_cache;")]
