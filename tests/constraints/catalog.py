"""The walls that the database really has, read from its catalogue.

What must not live here: what the walls ought to be (attacks.py).
"""

from dataclasses import dataclass

from django.apps import apps
from django.db import connection

APPS = ("audit", "api", "clusters", "tenants", "scheduler")

# Primary and foreign keys and NOT NULL are left out: Django makes those by itself, and its own
# suite tests them. pg_constraint shows a constraint trigger a second time, as contype "t".
# Triggers are ours on all tables, those of libraries too.
_WALLS = """
SELECT c.conname, r.relname, CASE c.contype WHEN 'c' THEN 'check' WHEN 'u' THEN 'unique'
                                            ELSE 'exclude' END
  FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
 WHERE r.relname = ANY(%(tables)s) AND c.contype IN ('c', 'u', 'x')
UNION ALL
SELECT i.relname, r.relname, 'index'
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class r ON r.oid = x.indrelid
 WHERE r.relname = ANY(%(tables)s) AND x.indisunique
   AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = x.indexrelid)
UNION ALL
SELECT t.tgname, r.relname, 'trigger'
  FROM pg_trigger t JOIN pg_class r ON r.oid = t.tgrelid
 WHERE NOT t.tgisinternal
"""
_DROP = {"index": 'DROP INDEX "{name}"', "trigger": 'DROP TRIGGER "{name}" ON "{table}"'}


@dataclass(frozen=True, slots=True, order=True)
class Wall:
    """`kind` is check, unique, exclude, index (a unique one without a constraint) or trigger."""

    name: str
    table: str
    kind: str

    def drop(self) -> None:
        """Take it down in the current transaction."""
        sql = _DROP.get(self.kind, 'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')
        with connection.cursor() as cursor:
            cursor.execute(sql.format(name=self.name, table=self.table))


_DELETE, _TRUNCATE = 8, 32  # bits of pg_trigger.tgtype


def guarded_tables() -> tuple[set[str], set[str]]:
    """Those where a trigger watches a DELETE, and those where one watches a TRUNCATE."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tgrelid::regclass::text, tgtype & %s <> 0, tgtype & %s <> 0"
            " FROM pg_trigger WHERE NOT tgisinternal",
            [_DELETE, _TRUNCATE],
        )
        found = cursor.fetchall()
    return {table for table, by, _ in found if by}, {table for table, _, by in found if by}


def tables() -> list[str]:
    """Berth's own tables, those of many-to-many fields too."""
    return [
        model._meta.db_table
        for label in APPS
        for model in apps.get_app_config(label).get_models(include_auto_created=True)
    ]


def walls() -> dict[str, Wall]:
    """By name, which has to be unique in the whole schema: an error says no more than the name."""
    with connection.cursor() as cursor:
        cursor.execute(_WALLS, {"tables": tables()})
        found = [Wall(*row) for row in cursor.fetchall()]
    assert len({wall.name for wall in found}) == len(found), "two walls of one name"
    return {wall.name: wall for wall in found}
