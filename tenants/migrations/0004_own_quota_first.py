"""A project may use what it does not lend, whatever the others hold: they can't have it from there.
The law is the core's (`scheduler/core/quota/quota.py`)."""

from django.db import migrations

WITHIN_LIMIT = """
CREATE OR REPLACE FUNCTION berth_quota_within_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    capacity bigint;
    claimed bigint;
BEGIN
    IF NEW.borrowing_limit_milli IS NOT NULL
       AND NEW.used_milli > NEW.nominal_milli + NEW.borrowing_limit_milli THEN
        RAISE EXCEPTION 'quota %: % used would pass % nominal + % borrowing',
            NEW.id, NEW.used_milli, NEW.nominal_milli, NEW.borrowing_limit_milli
            USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_limit';
    END IF;
"""

# Such use leaves the claim below as it is, even one that is over because a quota was cut elsewhere.
OWN = """
    IF NEW.used_milli <= NEW.nominal_milli - NEW.lending_limit_milli THEN
        RETURN NULL;
    END IF;
"""

# P2. What a project does not lend stays reserved for it: the fleet's claim on a flavor is
# sum(max(used, nominal - lent)). The flavor's row is the lock that makes concurrent increases see
# each other.
WITHIN_FLEET = """
    PERFORM berth_need_read_committed();
    PERFORM 1 FROM clusters_flavor WHERE id = NEW.flavor_id FOR NO KEY UPDATE;
    SELECT sum(nominal_milli),
           sum(greatest(used_milli, nominal_milli
                        - least(nominal_milli, coalesce(lending_limit_milli, nominal_milli))))
      INTO capacity, claimed FROM tenants_quota WHERE flavor_id = NEW.flavor_id;
    IF claimed > capacity THEN
        RAISE EXCEPTION 'flavor %: % claimed would pass the fleet''s % nominal',
            NEW.flavor_id, claimed, capacity
            USING ERRCODE = 'check_violation', CONSTRAINT = 'quota_within_fleet';
    END IF;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_never_emptied")]
    operations = [
        migrations.RunSQL(WITHIN_LIMIT + OWN + WITHIN_FLEET, WITHIN_LIMIT + WITHIN_FLEET),
    ]
