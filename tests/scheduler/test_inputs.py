"""What a cycle was planned from is kept, and planned again from that alone to the same bits."""

import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from django.core.management import CommandError
from pytest_django import Settings

from controlplane.kernel.ids import uuid7
from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import SCHEMA, Snapshot
from scheduler.core.wire import Unreadable
from scheduler.loop import lease, retention, run
from scheduler.loop.recording import inputs
from scheduler.models import (
    CycleInput,
    CycleRecord,
    InvariantCheck,
    SchedulerLease,
)
from tenants.models import Quota
from tests.factories import AT
from tests.scheduler.replaying import cycle, replay
from tests.scheduler.stage import Stage

SOON = AT + timedelta(seconds=2)


@pytest.fixture(autouse=True)
def every_one(settings: Settings) -> None:
    settings.BERTH_INPUTS_S = settings.BERTH_INPUTS_HOLDS_S = 0


@pytest.fixture
def first(committed: Stage) -> CycleRecord:
    """A cycle that started `train` and `other`, and held `third`."""
    for name in ("train", "other", "third"):
        committed.submit(name, gpus=8)
    return cycle()


def change_payload(**fields: object) -> None:
    """Store other values in its stead."""
    row = CycleInput.objects.get()
    value = orjson.loads(zlib.decompress(row.payload)) | fields
    CycleInput.objects.update(payload=zlib.compress(orjson.dumps(value)))


def test_a_cycle_of_the_past_is_planned_again_to_the_same_bits(
    first: CycleRecord, committed: Stage
) -> None:
    Quota.objects.update(nominal_milli=1000)
    committed.submit("later")
    found = inputs.kept(first.id)
    assert found is not None
    assert found.snapshot.schema == SCHEMA
    assert found.policy == Policy()
    made = inputs.replayed(found)
    assert [a.workload for a in made.admits] == [str(id) for id, *_ in first.plan["admits"]]
    assert inputs.digest(made) == found.digest
    assert inputs.differences(found, made) == []
    status, said = replay(first.id)
    assert (status, "The same plan: 2 start, 0 are evicted, 1 are held" in said) == (0, True)


def test_a_cycle_that_evicts_is_planned_again_with_its_policy(committed: Stage) -> None:
    Quota.objects.update(nominal_milli=8000, borrowing_limit_milli=0)
    low = committed.running("low", gpus=8, priority_class="low")
    committed.submit("high", gpus=8, priority_class="high")
    record = cycle(at=SOON, max_preemptors=1)
    found = inputs.kept(record.id)
    assert found is not None
    assert [preempt.victim for preempt in found.decided.preempts] == [str(low.id)]
    assert found.policy == Policy(max_preemptors=1)
    status, said = replay(record.id, "--workload", low.id)
    assert status == 0
    assert "It is evicted for" in said


def test_a_cycle_that_held_is_planned_again_with_its_checks(committed: Stage) -> None:
    big = committed.submit("big", gpus=8)
    Quota.objects.update(nominal_milli=1000, borrowing_limit_milli=0)
    record = cycle()
    assert record.admitted_count == 0
    kept = CycleInput.objects.get()
    assert (kept.cycle_id, kept.schema, kept.outdated) == (record.id, SCHEMA, False)
    Quota.objects.update(nominal_milli=8000)
    status, said = replay(record.id, "--workload", big.id)
    assert status == 0
    assert "It is held: " in said
    assert f"with {committed.flavor.name}:" in said
    assert said.count("  NO ") == 1
    assert kept.digest == inputs.digest(inputs.replayed(_of(record)))


def _of(record: CycleRecord) -> inputs.Inputs:
    found = inputs.kept(record.id)
    assert found is not None
    return found


def test_a_cycle_while_admission_was_stopped_is_planned_again_as_it_was(
    committed: Stage,
) -> None:
    waiting = committed.submit()
    stop = InvariantCheck.objects.create(at=AT, took_ms=1, violations=[{"rule": "r", "id": "1"}])
    assert stop.stops
    record = cycle()
    stop.delete()
    status, said = replay(record.id, "--workload", waiting.id)
    assert (status, "It is held: " in said, "  NO    New work is let in" in said) == (
        0,
        True,
        True,
    )


def test_inputs_that_are_too_large_are_not_worked_out_in_each_cycle(
    committed: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BERTH_INPUTS_MIB, settings.BERTH_INPUTS_S = 1, 3600
    settings.BERTH_INPUTS_HOLDS_S = 3600
    tried = []

    def large(*_: object, **__: object) -> bytes:
        tried.append(1)
        return bytes((1 << 20) + 1)

    monkeypatch.setattr(zlib, "compress", large)
    for name in ("train", "other", "third"):
        committed.submit(name, gpus=8)
        cycle()
    assert tried == [1]


def test_nothing_is_kept_where_nothing_was_decided(first: CycleRecord) -> None:
    held = cycle(at=SOON)
    assert held.pending_count == 1
    assert CycleInput.objects.get().cycle_id == first.id
    with pytest.raises(CommandError, match=f"Nothing is kept of what cycle {held.id}"):
        replay(held.id)


def test_nothing_is_kept_of_a_cycle_that_was_fenced_off(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed.submit()

    def slow(snapshot: Snapshot, policy: Policy, memory: Memory) -> Plan:
        SchedulerLease.objects.update(expires_at="2000-01-01T00:00:00Z")
        assert lease.acquire(shard=run.SHARD)
        return plan(snapshot, policy, memory)

    monkeypatch.setattr(run, "plan", slow)
    assert run.run_cycle(at=AT) is None
    assert not CycleInput.objects.exists()


def test_cycles_close_upon_each_other_are_kept_only_when_they_evict(
    committed: Stage, settings: Settings
) -> None:
    settings.BERTH_INPUTS_S = 3600
    committed.submit("first")
    kept = [cycle()]
    committed.submit("second")
    cycle(at=SOON)
    Quota.objects.update(nominal_milli=2000, borrowing_limit_milli=0)
    committed.submit("high", priority_class="high")
    kept.append(cycle(at=SOON))
    assert kept[1].preempted_count == 1
    assert list(CycleInput.objects.order_by("pk").values_list("pk", flat=True)) == [
        record.id for record in kept
    ]


def test_the_oldest_go_when_there_is_no_room_for_more(
    committed: Stage, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BERTH_INPUTS_MIB = 1
    monkeypatch.setattr(inputs, "written", lambda _: b"")
    monkeypatch.setattr(zlib, "compress", lambda *_, **__: bytes(400_000))
    kept = []
    for number in range(4):
        committed.submit(f"w{number}")
        kept.append(cycle().id)
    assert list(CycleInput.objects.order_by("pk").values_list("pk", flat=True)) == kept[2:]
    assert sum(len(row.payload) for row in CycleInput.objects.all()) <= 1 << 20
    settings.BERTH_INPUTS_MIB = 0
    committed.submit("last")
    assert cycle().admitted_count == 1
    assert CycleInput.objects.count() == 2


def test_they_are_kept_for_some_days_and_go_with_their_record(first: CycleRecord) -> None:
    def aged(days: int) -> UUID:
        made = datetime.now(UTC) - timedelta(days=days)
        first.pk = UUID(int=int(made.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62)
        first.save(force_insert=True)
        CycleInput.objects.create(cycle=first, payload=b"", start_byte=0)
        return first.pk

    found = inputs.kept(first.pk)
    assert found is not None
    today, ancient, _, young = first.pk, aged(15), aged(4), aged(2)
    retention.prune(CycleRecord, days=run.KEPT_DAYS)
    assert not CycleInput.objects.filter(pk=ancient).exists()
    first.pk = uuid7()
    first.save(force_insert=True)
    made = inputs.replayed(found)
    inputs.keep(
        first,
        snapshot=found.snapshot,
        policy=found.policy,
        made=made,
        told=False,
        carried_out=True,
    )
    assert set(CycleInput.objects.values_list("pk", flat=True)) == {first.pk, today, young}


def test_no_name_of_a_person_or_of_work_is_kept(first: CycleRecord, committed: Stage) -> None:
    text = zlib.decompress(CycleInput.objects.get().payload).decode()
    assert str(committed.project.id) in text
    for private in (
        "train", committed.ada.username, committed.ada.email, committed.project.name,
        committed.project.tenant.name,
    ):  # fmt: skip
        assert f'"{private}"' not in text


def test_another_plan_is_told_with_what_differs_first(first: CycleRecord) -> None:
    change_payload(policy={"max_admits": 1}, code="0" * 12)
    status, said = replay(first.id)
    assert status == 1
    assert f"Planned by other code: 000000000000 then, {inputs.code()} now." in said
    assert 'admits[1] was {"workload":' in said
    assert "and is missing." in said


def test_holds_that_differ_are_told(first: CycleRecord) -> None:
    change_payload(digest="0" * 64)
    status, said = replay(first.id)
    assert (status, "All but the holds is the same" in said) == (1, True)


def test_a_file_of_one_cycle_is_planned_again_without_its_database(
    first: CycleRecord, tmp_path: Path
) -> None:
    bad, made = tmp_path / "bad.json", tmp_path / "plan.json"
    assert replay(first.id, "--export", bad, "--json", made)[0] == 0
    assert len(orjson.loads(made.read_bytes())["admits"]) == 2
    CycleRecord.objects.all().delete()
    assert not CycleInput.objects.exists()
    held = orjson.loads(made.read_bytes())["holds"][0]["workloads"][0]
    status, said = replay("--file", bad, "--workload", held)
    assert status == 0
    assert "It is held: " in said
    admit = orjson.loads(made.read_bytes())["admits"][0]
    _, said = replay("--file", bad, "--workload", admit["workload"])
    assert f"It starts in cluster {admit['cluster']}." in said
    assert f"rank 0: node {admit['places'][0]['node']}" in said
    assert "Nothing of nobody." in replay("--file", bad, "--workload", "nobody")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "It is no JSON"),
        (b"[]", "It has no snapshot"),
        (b'{"snapshot": {"schema": 2}}', f"of schema 2; this version reads schema {SCHEMA} alone"),
        (
            b'{"snapshot": {"schema": %d}}' % SCHEMA,
            "Inputs lacks the field code.",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_told(text: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_bytes(text)
    with pytest.raises(CommandError, match=said):
        replay("--file", file)
    with pytest.raises(CommandError, match="No such file"):
        replay("--file", tmp_path / "none.json")


def test_what_an_older_version_stored_is_refused(first: CycleRecord) -> None:
    change_payload(snapshot={"schema": SCHEMA - 1})
    with pytest.raises(Unreadable, match="alone"):
        inputs.kept(first.id)
    with pytest.raises(CommandError, match="Cannot be planned again"):
        replay(first.id)
