"""The guard of admission: what a check finds stops what is new, and nothing else.

A device is held twice, by raw SQL: the constraint that refuses it is taken down meanwhile.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction

from clusters.port import PodPhase
from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict
from scheduler import tasks
from scheduler.loop import run
from scheduler.loop.checking import checks, invariants, rules
from scheduler.loop.checking.promises import RULES
from scheduler.loop.checking.rules import Rule, told
from scheduler.loop.measuring import meter
from scheduler.models import InvariantCheck, PlacementSpan, Workload
from tenants.models import Quota, UsageInterval
from tests.factories import AT
from tests.scheduler.breaks import HOURS, double_book, small_node, sql
from tests.scheduler.stage import LATER, Stage

WALL = "span_held_once"
SOON = AT + timedelta(seconds=5)
THEN = AT + timedelta(seconds=10)


@contextmanager
def without_triggers() -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
        yield


@pytest.fixture
def double(committed: Stage) -> Iterator[Stage]:
    """`first` and `second` run, on one device; `waits` would fit elsewhere."""
    for name in ("first", "second"):
        committed.submit(name)
        assert run.run_cycle(at=AT)
        committed.dispatch()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [WALL]
        )
        (definition,) = cursor.fetchone()
        cursor.execute(f"ALTER TABLE scheduler_placementspan DROP CONSTRAINT {WALL}")
    try:
        with without_triggers():
            double_book()
        committed.submit("waits")
        yield committed
    finally:
        with without_triggers(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM scheduler_placementspan")
            cursor.execute(
                f"ALTER TABLE scheduler_placementspan ADD CONSTRAINT {WALL} {definition}"
            )


def repair() -> None:
    """The second of the two gets the other device back."""
    held = PlacementSpan.objects.order_by("id").last()
    assert held
    free = held.placement.node.devices.exclude(id=held.device_id).first()
    assert free
    with without_triggers():
        sql("UPDATE scheduler_placementspan SET device_id = %s WHERE id = %s", free.id, held.id)


def wrong_version(name: str, version: int) -> None:
    with without_triggers():
        Workload.objects.filter(name=name).update(version=version)


def state(name: str) -> str:
    return Workload.objects.get(name=name).state


def recorded() -> list[str]:
    rows = AuditEvent.objects.filter(action__startswith="admission.").order_by("id")
    return [row.action for row in rows]


def test_a_device_held_twice_stops_admission_until_it_is_not(
    double: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert checks.check(at=AT).stops
    device = PlacementSpan.objects.first()
    assert device
    assert f"P1: device {device.device_id} is held twice" in caplog.text
    record = run.run_cycle(at=SOON)
    assert record
    assert (record.admitted_count, state("waits")) == (0, "PENDING")
    waiting = Workload.objects.get(name="waits")
    assert waiting.reason
    assert waiting.reason["code"] == "admission-stopped"
    repair()
    assert not checks.check(at=SOON).stops
    run.run_cycle(at=THEN)
    assert state("waits") == "ADMITTED"
    assert recorded() == ["admission.stop", "admission.resume"]


def test_what_runs_goes_on_is_metered_and_can_be_cancelled(double: Stage) -> None:
    checks.check(at=AT)
    first = Workload.objects.get(name="first").placements.get()
    double.observe(double.report(first, PodPhase.RUNNING, started_at=AT), at=AT)
    assert state("first") == "RUNNING"
    meter.tick(at=HOURS)
    assert UsageInterval.objects.filter(placement_id=first.id).exists()
    double.cancel(Workload.objects.get(name="second"))
    double.dispatch(at=LATER)
    double.relist()
    double.cancel(Workload.objects.get(name="waits"))
    assert (state("second"), state("waits")) == ("CANCELLED", "CANCELLED")


def test_nobody_is_evicted_and_who_waits_is_told_why(double: Stage) -> None:
    Quota.objects.update(nominal_milli=2000, borrowing_limit_milli=0)
    double.submit("urgent", priority_class="high")
    checks.check(at=AT)
    run.run_cycle(at=SOON)
    assert state("first") == state("second") == "BOUND"
    waiting = Workload.objects.get(name="urgent")
    assert waiting.reason
    assert waiting.reason["code"] == "quota-used"


def test_an_operator_accepts_what_is_found_and_not_what_comes_after(double: Stage) -> None:
    checks.check(at=AT)
    assert checks.accept(at=AT)
    assert checks.accept(at=AT) is None
    assert not checks.check(at=SOON).stops
    run.run_cycle(at=SOON)
    assert state("waits") == "ADMITTED"
    Quota.objects.update(used_milli=1)
    found = checks.check(at=THEN)
    assert found.stops
    assert len(found.violations) == 2
    assert recorded() == ["admission.stop", "admission.resume", "admission.stop"]


def test_what_was_accepted_stays_so_while_its_amounts_change(committed: Stage) -> None:
    """One thousandth too many is counted as used; each start and stop moves both sides."""
    Quota.objects.update(used_milli=1)
    first = checks.check(at=AT)
    checks.accept(at=AT)
    committed.submit()
    run.run_cycle(at=SOON)
    assert state("train") == "ADMITTED"
    found = checks.check(at=THEN)
    assert found.violations != first.violations
    assert not found.stops
    assert recorded() == ["admission.stop", "admission.resume"]


def test_what_was_accepted_stays_so_in_other_words(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    Quota.objects.update(used_milli=1)
    checks.check(at=AT)
    checks.accept(at=AT)
    reworded = {replace(rule, sentence=f"{rule.sentence}!"): sql for rule, sql in RULES.items()}
    monkeypatch.setattr(invariants, "RULES", reworded)
    found = checks.check(at=SOON)
    assert [sentence[-1] for sentence in found.violations] == ["!"]
    assert not found.stops


def test_what_is_new_is_noticed_where_no_sentence_tells_of_it(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "TOLD", 0)
    for name in ("old", "new"):
        committed.submit(name)
    wrong_version("old", 7)
    first = checks.check(at=AT)
    checks.accept(at=AT)
    wrong_version("old", 1)
    wrong_version("new", 7)
    found = checks.check(at=SOON)
    assert found.violations == first.violations == ["P5: … and 1 more like the last."]
    assert found.stops


def test_more_than_can_be_told_apart_is_never_accepted(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rules, invariants, checks):
        monkeypatch.setattr(module, "MOST", 1)
    for name in ("one", "other"):
        committed.submit(name)
    wrong_version("one", 7)
    checks.check(at=AT)
    checks.accept(at=AT)
    wrong_version("other", 7)
    assert checks.check(at=SOON).stops
    with pytest.raises(Conflict, match="More than 1 violations"):
        checks.accept(at=SOON)
    with pytest.raises(CommandError, match="More than 1 violations"):
        call_command("check_invariants", "--accept", stderr=StringIO())
    assert checks.check(at=THEN).stops


def test_what_came_back_after_it_was_gone_is_not_accepted(committed: Stage) -> None:
    for used, at, stops in ((1, AT, True), (0, SOON, False), (1, THEN, True)):
        Quota.objects.update(used_milli=used)
        assert checks.check(at=at).stops == stops
        checks.accept(at=at)


def test_the_check_that_began_last_decides_however_long_another_took(committed: Stage) -> None:
    checks.check(at=SOON)
    Quota.objects.update(used_milli=1)
    assert checks.check(at=AT).stops
    committed.submit()
    Quota.objects.update(used_milli=0)
    run.run_cycle(at=THEN)
    assert state("train") == "ADMITTED"
    assert recorded() == []


def test_a_smaller_node_is_told_and_stops_nothing(committed: Stage) -> None:
    committed.submit()
    run.run_cycle(at=AT)
    small_node()
    assert not checks.check(at=SOON).stops
    assert any("room: node" in sentence for sentence in told(invariants.violations()))


def test_a_check_that_takes_too_long_changes_nothing(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    Quota.objects.update(used_milli=1)
    checks.check(at=AT)
    endless = Rule("P1", "endless", 1, "{}")
    with monkeypatch.context() as patched:
        patched.setattr(invariants, "RULES", {endless: "SELECT pg_sleep(60)"})
        with pytest.raises(OperationalError, match="statement timeout"):
            checks.check(at=SOON, query_s=0.05)
    assert InvariantCheck.objects.get().stops


def test_the_task_checks(committed: Stage) -> None:
    tasks.check_invariants()
    assert InvariantCheck.objects.get().violations == []


def test_the_command_stops_admission_and_lets_it_go_on(committed: Stage) -> None:
    Quota.objects.update(used_milli=1)
    for accept, words in (([], "--accept lets"), (["--accept"], "admission goes on")):
        out = StringIO()
        with pytest.raises(SystemExit) as status:
            call_command("check_invariants", *accept, stdout=out, stderr=out)
        assert status.value.code == 1
        assert "P2: project" in out.getvalue()
        assert words in out.getvalue()
    found = InvariantCheck.objects.order_by("id").last()
    assert found
    assert not found.stops
    row = AuditEvent.objects.get(action="admission.resume")
    assert (row.target_id, row.after) == (
        found.id, {"violations": found.violations, "accepted": True},
    )  # fmt: skip
