"""What is written for each workload is written to few indexes: each write to one is paid for by
all that is ever run."""

import pytest
from django.db import connection

from scheduler.selectors.elastic import SHORT

WRITTEN = (
    "scheduler_workload",
    "scheduler_podset",
    "scheduler_podsetflavor",
    "scheduler_workloadevent",
    "scheduler_attempt",
    "scheduler_placement",
    "scheduler_placementspan",
    "scheduler_operation",
    "scheduler_estimate",
    "tenants_usageinterval",
    "audit_auditevent",
    "audit_auditlink",
)
# Of two plain indexes over the same first columns the shorter one finds nothing that the other
# doesn't.
_BEGINS = """
SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text
FROM pg_index a JOIN pg_index b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
WHERE a.indrelid = ANY(%s::regclass[]) AND NOT a.indisunique
  AND a.indpred IS NULL AND b.indpred IS NULL AND b.indnkeyatts > a.indnkeyatts
  AND (b.indkey::int2[])[0:a.indnkeyatts - 1] = (a.indkey::int2[])[0:a.indnkeyatts - 1]
"""
# By their keys, which a constraint may own, and by what their conditions name.
_LOOKED_AT = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
WHERE i.indrelid = %s::regclass AND (
    a.attnum = ANY(i.indkey)
    OR EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
               AND d.objid = i.indexrelid AND d.refclassid = 'pg_class'::regclass
               AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
"""


@pytest.mark.django_db
def test_no_index_of_what_is_written_often_begins_another() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_BEGINS, [list(WRITTEN)])
        assert cursor.fetchall() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "changing"),
    [
        ("scheduler_workload", {"state", "version", "reason", "reason_at", "started_at"}),
        ("scheduler_attempt", {"claim", "claimed_until"}),
        ("scheduler_placement", {"opened_at", "started_at", "ended_at", "metered_until"}),
    ],
)
def test_no_index_looks_at_what_changes_while_work_goes_on(table: str, changing: set[str]) -> None:
    """Such a change is made beside the version before, and written to no index (ADR 0043)."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOKED_AT, [table])
        looked_at = {name for (name,) in cursor.fetchall()}
    assert "id" in looked_at
    assert not looked_at & changing


@pytest.mark.django_db
def test_the_pods_of_an_elastic_set_are_found_by_their_workload() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {SHORT}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on scheduler_placement" not in plan
    assert "(workload_id = " in plan
