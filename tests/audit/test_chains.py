"""The chains of audit rows: what is changed shows, and what is not does not."""

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from controlplane.audit import chains, services
from controlplane.audit.chains import Head, Unsound, verify
from controlplane.audit.models import AuditEvent, AuditLink
from controlplane.kernel.ids import uuid7
from tests.audit.writing import places, record, tamper

pytestmark = pytest.mark.django_db(transaction=True)

EDIT = "UPDATE audit_auditevent SET {} WHERE id = %s"
AWKWARD = {
    "bb": 'quote " and \\ and \x7f and \x1f\b\f\n\r\t',
    "a": "é, 日本, \U0001f600, \u2028, </script>",
    "é": 1.10,
    "c": [1e300, -0.0, 12345678901234567890, True, None, {}, []],
    "": {"z": 0.1, "aa": 1, "b": {"nested": "yes"}},
}


def heads() -> dict[int, Head]:
    return {chain.number: chain.head for chain in verify()}


def unsound(anchor: Mapping[int, Head] | None = None) -> str:
    with pytest.raises(Unsound) as error:
        verify(anchor=anchor)
    return error.value.message


def in_words(id: UUID) -> str:
    return f"Row {id} (quota.set, 2026-11-21T09:00:00.000000Z)"


def test_nothing_is_sound() -> None:
    assert verify() == []


def test_every_row_is_in_one_chain() -> None:
    record(3)
    with transaction.atomic():
        record(2)
        record(1)
    [chain] = verify()
    assert chain.rows == 6
    assert chain.head.position == 3


@pytest.fixture
def anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may hold what no action tells of, as an older Berth's may."""
    monkeypatch.setattr(services, "_check", lambda entry: None)


@pytest.mark.usefixtures("anything")
def test_rows_are_read_back_to_the_letter_whatever_is_in_them() -> None:
    """What PostgreSQL makes the digest of, Python makes too."""
    record(2, before=AWKWARD, after=dict(reversed(AWKWARD.items())), tenant_id=uuid7())
    record(1, action='"', project_id=uuid7())
    [chain] = verify()
    assert chain.rows == 3


@pytest.mark.usefixtures("anything")
def test_who_has_the_rows_needs_no_database_to_work_their_digests_out() -> None:
    """By what ADR 0099 says."""
    [id] = record(before={"bb": 1, "a": [{"é": None, "z": 1.5, "aaa": "é\n"}]}, tenant_id=uuid7())
    row = AuditEvent.objects.get(id=id)
    ids = [str(row.target_id), str(row.tenant_id), None]
    told = [str(id), "2026-11-21T09:00:00.000000Z", row.actor, row.actor_name, row.action,
            row.target_type, *ids, _in_order(row.before), _in_order(row.after)]  # fmt: skip
    text = json.dumps(told, ensure_ascii=False)
    digests = AuditLink.objects.get(id=id).digests
    assert hashlib.sha256(text.encode()).digest() == bytes(digests)


def _in_order(value: Any) -> Any:  # Any: JSON
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return {key: _in_order(value[key]) for key in keys}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def test_thousands_in_one_statement_are_one_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "CHUNK", 7)
    ids = record(3000)
    [chain] = verify()
    assert (chain.rows, chain.head.position) == (3000, 1)
    tamper(EDIT.format("actor = 'user:2'"), [ids[2017]])
    assert unsound().startswith(in_words(ids[2017]))


@pytest.mark.parametrize(
    "edit",
    [
        "at = at + interval '1 microsecond'", "actor = 'user:2'", "actor_name = 'ben'",
        "target_type = 'tenant'", "target_id = gen_random_uuid()", "before = '{\"a\": 1}'",
        "after = '{\"nominal_milli\": 1.0}'", "tenant_id = gen_random_uuid()",
        "project_id = gen_random_uuid()",
    ],
)  # fmt: skip
def test_the_row_that_somebody_changed_is_named(edit: str) -> None:
    [first] = record()
    _, second, third = record(3)
    tamper(EDIT.format(edit), [second])
    tamper(EDIT.format(edit), [third])
    assert unsound().split()[1] == str(second)
    assert "is not as it was written in link 2 of chain" in unsound()
    tamper("DELETE FROM audit_auditevent WHERE id = %s", [first])
    assert unsound().startswith(f"Row {first} is gone; it is in link 1 of chain")


def test_who_changes_the_digest_with_the_row_is_found_by_the_link() -> None:
    record()
    [id] = record()
    tamper(EDIT.format("action = 'quota.delete'"), [id])
    tamper(
        "UPDATE audit_auditlink SET digests = (SELECT berth_audit_digest(e)"
        " FROM audit_auditevent e WHERE e.id = audit_auditlink.id) WHERE id = %s",
        [id],
    )
    assert "does not follow from the one before it" in unsound()
    assert f"row {id} (quota.delete" in unsound()


def test_who_also_makes_that_link_anew_is_found_by_the_next() -> None:
    [first], [second] = record(), record()
    _forge(first)
    assert f"row {second}" in unsound()
    assert "does not follow from the one before it" in unsound()


def test_who_makes_all_that_follows_anew_is_found_by_the_anchor_alone() -> None:
    [first], [second] = record(), record()
    anchor = heads()
    _forge(first)
    _forge(second)
    assert len(verify()) == 1
    assert "is not the one that the anchor knows" in unsound(anchor)


def _forge(id: UUID) -> None:
    """Change that row, and make its link again from the one before it."""
    tamper(EDIT.format("after = '{}'"), [id])
    tamper(
        """
        UPDATE audit_auditlink l SET digests = berth_audit_digest(e), digest = sha256(
            coalesce((SELECT digest FROM audit_auditlink b WHERE b.chain = l.chain
                      AND b.position = l.position - 1), '') || berth_audit_digest(e))
        FROM audit_auditevent e WHERE e.id = l.id AND l.id = %s
        """,
        [id],
    )


def test_a_row_that_is_taken_away_with_its_link_leaves_a_gap() -> None:
    record()
    [id] = record()
    record()
    _cut(id)
    assert unsound().endswith("has no link 2.")


def test_a_cut_end_is_found_by_the_anchor_alone() -> None:
    record()
    before = heads()
    [id] = record()
    anchor = heads()
    _cut(id)
    assert len(verify(anchor=before)) == 1
    assert unsound(anchor).endswith(
        "ends with link 1, and the anchor knows link 2: its end is cut off."
    )


def test_a_chain_that_is_gone_is_found_by_the_anchor_alone() -> None:
    [id] = record()
    anchor = heads()
    _cut(id)
    assert verify() == []
    assert unsound(anchor).endswith("is gone: it had 1 links.")


def _cut(id: UUID) -> None:
    tamper("DELETE FROM audit_auditlink WHERE id = %s", [id])
    tamper("DELETE FROM audit_auditevent WHERE id = %s", [id])


def test_chains_that_grew_go_on_from_an_anchor() -> None:
    record()
    anchor = heads()
    record()
    [chain] = verify(anchor=anchor)
    assert chain.head.position == 2


def test_a_row_that_was_put_in_is_in_no_link() -> None:
    [id] = record()
    event = AuditEvent.objects.get(id=id)
    columns = ", ".join(f'"{field.column}"' for field in event._meta.concrete_fields[1:])
    made = uuid7()
    tamper(
        f"INSERT INTO audit_auditevent (id, {columns})"  # names of ours
        f" SELECT %s, {columns} FROM audit_auditevent",
        [made],
    )
    assert unsound() == f"{in_words(made)} is in no link of any chain."


def test_a_row_is_in_no_two_links() -> None:
    [id] = record()
    row = AuditLink.objects.get(id=id)
    AuditLink.objects.create(chain=row.chain, events=row.events, digests=row.digests)
    assert unsound() == f"{in_words(id)} is in 2 links."


def test_what_is_rolled_back_leaves_no_hole() -> None:
    record()
    with transaction.atomic():
        record()
        transaction.set_rollback(True)
    with transaction.atomic():
        with transaction.atomic():
            record()
            transaction.set_rollback(True)
        record()
    assert [*places().values()] == [[1, 2]]
    assert verify()[0].rows == 2


def _migrate(to: str) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([("audit", to)])


def _migrate_on() -> None:
    """To the newest of all: what came to need the audit's went back with them."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_rows_from_before_there_were_chains_get_one_and_lose_it_again() -> None:
    newest = "0005_old_rows_in_a_chain"
    _migrate("0003_never_emptied")
    try:
        record(2001)
        _migrate("0004_chain")
        record(2)
        _migrate(newest)
    finally:
        _migrate_on()
    assert sum(chain.rows for chain in verify()) == 2003
    assert 3 <= len(places()[0]) <= 4
    _migrate("0004_chain")
    _migrate_on()
    assert sum(chain.rows for chain in verify()) == 2003, "nothing is linked twice"


def test_the_lengths_are_those_of_the_chains_that_there_can_be() -> None:
    record()
    [chain] = verify()
    assert chains.lengths() == {number: number == chain.number for number in range(16)}
    text = import_module("controlplane.audit.migrations.0004_chain").LINK
    assert f"pg_backend_pid() % {chains.CHAINS}," in text
