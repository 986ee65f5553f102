"""Rows that contradict each other: the loop goes on, and tells each fault once."""

import logging

import pytest

from clusters.models import Node
from controlplane.counts import Counts
from scheduler.core.plan import Fault
from scheduler.core.reasons import FaultKind, Subject
from scheduler.loop import run
from scheduler.loop.recording import faults
from scheduler.models import CycleRecord
from tests.factories import AT
from tests.scheduler.stage import Stage

ONE = Fault(FaultKind.QUANTITY, Subject.NODE, "n", "node n has cpu_milli -1")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_logged", frozenset())


def gauge() -> dict[str, float]:
    found = next(m for m in Counts().collect() if m.name == "berth_snapshot_faults")
    return {sample.labels["kind"]: sample.value for sample in found.samples}


def test_a_cycle_plans_the_rest_and_tells_what_is_wrong(
    committed: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    assert gauge() == dict.fromkeys(FaultKind, 0)
    held = committed.running("held").placements.get()
    Node.objects.filter(id=held.node_id).update(gone_at=AT)
    committed.hardware_changed()
    for name in ("next", "last"):
        committed.submit(name)
        record = run.run_cycle(at=AT)
        assert record is not None
        assert record.admitted_count == 1
        said = f"node {held.node_id}, unknown, is held by 1 placements, {held.id} first"
        assert record.faults == {"unknown-node": {"count": 1, "first": said}}
    assert caplog.text.count(f"snapshot: {said} (unknown-node)") == 1
    assert gauge() == dict.fromkeys(FaultKind, 0) | {"unknown-node": 1}
    Node.objects.update(gone_at=None)
    committed.hardware_changed()
    committed.submit("well")
    run.run_cycle(at=AT)
    assert gauge() == dict.fromkeys(FaultKind, 0)
    assert CycleRecord.objects.order_by("-id")[0].faults == {}


def test_a_fault_that_comes_back_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        for found in ([ONE], [ONE], [], [ONE]):
            faults.log(found)
    assert len(caplog.records) == 2


def test_a_flood_of_faults_is_logged_in_part_and_counted_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = [Fault(ONE.kind, ONE.subject, f"n{i}", ONE.text) for i in range(faults.MOST + 5)]
    faults.log(many)
    assert len(caplog.records) == faults.MOST + 1
    assert "… and 5 more faults" in caplog.text
    assert faults.summary(many) == {"quantity": {"count": faults.MOST + 5, "first": ONE.text}}
