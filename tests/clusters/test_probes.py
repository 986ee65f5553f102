"""Probes as rows: asked for once at a time, carried out by a task, made up for, never for ever."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, Never
from uuid import UUID

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from clusters import registry
from clusters.models import Cluster, ClusterCredential, ClusterProbe, ProbeStop
from clusters.port import ProbeStep, Verdict
from clusters.services import probes
from controlplane.kernel import clock, hints
from controlplane.kernel.ids import uuid7
from scheduler import tasks
from tests import factories
from tests.factories import AT
from tests.simulation import Simulator, simulator, store_credential
from tests.waiting import PATIENCE_S

__all__ = ["simulator"]

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db]


@pytest.fixture
def north(simulator: Simulator) -> Cluster:
    """Its credential is stored, and the probe that was asked for then is gone."""
    cluster = factories.cluster("north")
    simulator.store_credential(cluster)
    ClusterProbe.objects.all().delete()
    return cluster


def asked(cluster: Cluster, at: datetime | None = None) -> ClusterProbe:
    return probes.ask(cluster=cluster, actor_name="oz", at=at or clock.now())


def carried_out(probe: ClusterProbe) -> ClusterProbe:
    tasks.probe_cluster(probe_id=str(probe.id))
    probe.refresh_from_db()
    return probe


def test_each_step_is_stored_in_its_order_and_the_worst_is_the_verdict(
    north: Cluster, simulator: Simulator
) -> None:
    probe = carried_out(asked(north))
    assert (probe.verdict, probe.stopped, probe.why) == (Verdict.WORKS, "", "")
    assert (probe.asked_by, probe.credential_version, probe.tries) == ("oz", 1, 1)
    assert probe.began_at is not None
    assert probe.ended_at is not None
    assert [step.name for step in probe.told[:3]] == ["reach", "identity", "version"]
    simulator.fault(kind="forbid", verb="patch", resource="pods", count=0)
    probe = carried_out(asked(north))
    assert (probe.verdict, probe.failures) == (Verdict.FAILS, 1)
    [failed] = [step for step in probe.told if step.verdict is Verdict.FAILS]
    assert failed.said.startswith("may not patch pods: add the verb to the ClusterRole")


def test_a_step_is_seen_while_the_next_is_tried(
    north: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Slow:
        def probe(self) -> Iterator[ProbeStep]:
            for name in ("one", "two"):
                yield ProbeStep(name, Verdict.WARNING, "so so")
                seen.append([step.name for step in ClusterProbe.objects.get().told])

        def close(self) -> None: ...

    monkeypatch.setattr(registry, "connect", lambda *_, **__: Slow())
    assert carried_out(asked(north)).verdict == Verdict.WARNING
    assert seen == [["one"], ["one", "two"]]


def test_a_cluster_is_probed_once_at_a_time(north: Cluster) -> None:
    first = asked(north)
    assert asked(north) == first
    carried_out(first)
    assert asked(north) != first


def test_a_message_that_comes_twice_does_nothing_twice(north: Cluster) -> None:
    first = carried_out(asked(north))
    assert carried_out(ClusterProbe.objects.get()).ended_at == first.ended_at
    assert ClusterProbe.objects.get().tries == 1
    tasks.probe_cluster(probe_id=str(uuid7()))  # of a probe that is gone


def test_storing_a_credential_asks_for_a_probe_of_it(north: Cluster, simulator: Simulator) -> None:
    simulator.store_credential(north)
    [probe] = ClusterProbe.objects.all()
    assert (probe.asked_by, probe.tries) == ("test", 0)
    assert carried_out(probe).credential_version == 2
    north.refresh_from_db()
    assert north.server == simulator.server


def test_a_probe_of_a_credential_that_is_replaced_is_broken_off(
    north: Cluster, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Replaced:
        def probe(self) -> Iterator[ProbeStep]:
            yield ProbeStep("one", Verdict.WORKS, "as it was")
            simulator.store_credential(north)
            yield ProbeStep("two", Verdict.WORKS, "of the old one")
            raise AssertionError("it goes on")

        def close(self) -> None: ...

    monkeypatch.setattr(registry, "connect", lambda *_, **__: Replaced())
    old = carried_out(asked(north))
    assert (old.stopped, old.why) == (
        ProbeStop.BROKEN_OFF,
        "The credential was replaced meanwhile.",
    )
    assert [step.name for step in old.told] == ["one"]
    monkeypatch.undo()
    new = ClusterProbe.objects.get(ended_at=None)
    assert (carried_out(new).verdict, new.credential_version) == (Verdict.WORKS, 2)


def test_without_a_credential_it_says_so(db: None) -> None:
    probe = carried_out(asked(factories.cluster("bare")))
    assert (probe.stopped, probe.why) == (ProbeStop.NO_CREDENTIAL, "No credential is stored yet.")
    assert probe.verdict == ""


def test_a_process_without_the_key_says_so(north: Cluster, settings: Settings) -> None:
    settings.BERTH_OPEN_KEYS = []
    probe = carried_out(asked(north))
    key = ClusterCredential.objects.get().key_id
    assert probe.stopped == ProbeStop.UNOPENED
    assert probe.why.endswith(f"can't be opened: this process has no key {key}.")


def test_one_that_takes_too_long_is_told(north: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(*_: object, **__: object) -> Never:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(registry, "connect", too_long)
    probe = carried_out(asked(north))
    assert (probe.stopped, probe.why[:19]) == (ProbeStop.BROKEN_OFF, "It took too long: t")


def test_a_cluster_that_does_not_answer_fails_at_the_first_step(db: None) -> None:
    cluster = factories.cluster("south")
    store_credential(cluster, server="https://127.0.0.1:1", token="t" * 16)
    probe = carried_out(ClusterProbe.objects.get())
    assert probe.verdict == Verdict.FAILS
    assert [step.name for step in probe.told] == ["reach"]
    assert "it refuses the connection" in probe.told[0].said


def test_the_newest_are_kept(north: Cluster) -> None:
    ids = []
    for _ in range(probes.KEPT + 2):
        ids.append(asked(north).id)
        ClusterProbe.objects.filter(ended_at=None).update(ended_at=AT, verdict=Verdict.WORKS)
    other = asked(factories.cluster("south"))
    kept = set(ClusterProbe.objects.values_list("id", flat=True))
    assert kept == {*ids[-probes.KEPT :], other.id}


def test_whose_probe_is_anothers_by_now_does_not_break_it_off(
    north: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Superseded:
        def probe(self) -> Iterator[ProbeStep]:
            yield ProbeStep("one", Verdict.WORKS, "so far")
            ClusterProbe.objects.update(tries=2)
            raise SoftTimeLimitExceeded

        def close(self) -> None: ...

    monkeypatch.setattr(registry, "connect", lambda *_, **__: Superseded())
    assert carried_out(asked(north)).ended_at is None


def test_a_failure_of_berths_own_ends_it_and_is_logged(
    north: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> Never:
        raise RuntimeError("a defect")

    monkeypatch.setattr(registry, "connect", broken)
    probe = carried_out(asked(north))
    assert (probe.stopped, probe.why) == (
        ProbeStop.BROKEN_OFF,
        "Berth failed: its log says why.",
    )
    assert "RuntimeError: a defect" in caplog.text


# What is lost is made up for.


def timed_for(since: timedelta) -> None:
    """That long ago, by the database's clock, all that there is came to wait or was begun."""
    ClusterProbe.objects.update(timed_from=Now() - since)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The probes for which a message was sent; those of exposure have their own tests."""
    found: list[UUID] = []

    def note(task: str, **arguments: str) -> None:
        if task == hints.PROBE_CLUSTER:
            found.append(UUID(arguments.pop("probe_id")))
            assert not arguments

    monkeypatch.setattr(hints, "send", note)
    return found


def test_a_lost_message_is_sent_again(north: Cluster, sent: list[UUID]) -> None:
    probe = asked(north, AT)
    probes.sweep(at=AT + timedelta(seconds=15))
    assert sent == [probe.id]


def test_what_no_worker_takes_up_is_broken_off(north: Cluster, sent: list[UUID]) -> None:
    probe = asked(north, AT)
    probes.sweep(at=AT + timedelta(days=2))  # on an accelerated clock
    assert sent == [probe.id]
    timed_for(probes.TAKEN_UP_WITHIN)
    sent.clear()
    probes.sweep(at=AT)
    probe.refresh_from_db()
    assert (probe.stopped, sent) == (ProbeStop.BROKEN_OFF, [])
    assert "for the queue dispatch" in probe.why


def test_one_that_is_being_carried_out_is_left_alone(north: Cluster, sent: list[UUID]) -> None:
    probe = asked(north, AT)
    ClusterProbe.objects.update(began_at=AT, tries=1)
    timed_for(probes.LOST_AFTER - timedelta(seconds=10))
    probes.sweep(at=AT + timedelta(hours=12))
    tasks.probe_cluster(probe_id=str(probe.id))
    assert (sent, ClusterProbe.objects.get().tries) == ([], 1)
    timed_for(probes.LOST_AFTER)
    probes.sweep(at=AT)
    assert sent == [probe.id]


def test_what_is_begun_anew_meanwhile_is_not_broken_off(north: Cluster) -> None:
    asked(north)
    as_it_was_read = ClusterProbe.objects.get()
    ClusterProbe.objects.update(began_at=AT, tries=1)
    probes.break_off(as_it_was_read, why="of before", at=AT)
    assert ClusterProbe.objects.get().ended_at is None


def test_each_cluster_with_a_credential_is_probed_daily(north: Cluster, sent: list[UUID]) -> None:
    factories.cluster("bare")
    probes.sweep(at=AT)
    [probe] = ClusterProbe.objects.all()
    assert (probe.cluster, probe.asked_by) == (north, "Berth")
    ClusterProbe.objects.update(ended_at=AT, verdict=Verdict.WORKS)
    probes.sweep(at=AT + probes.PROBED_EVERY - timedelta(seconds=1))
    assert ClusterProbe.objects.count() == 1
    probes.sweep(at=AT + 999 * probes.PROBED_EVERY, speed=1000)
    assert ClusterProbe.objects.count() == 1
    probes.sweep(at=AT + probes.PROBED_EVERY)
    assert ClusterProbe.objects.count() == 2


def test_one_cluster_at_a_time_is_probed_daily_the_longest_unprobed_first(
    north: Cluster, simulator: Simulator, sent: list[UUID]
) -> None:
    south = factories.cluster("south")
    simulator.store_credential(south)
    ClusterProbe.objects.all().delete()
    factories.probe(north, asked_at=AT)
    factories.probe(south, asked_at=AT - timedelta(hours=1))
    later = AT + probes.PROBED_EVERY
    probes.sweep(at=later)
    probes.sweep(at=later)
    probe = ClusterProbe.objects.get(ended_at=None)
    assert probe.cluster == south
    carried_out(probe)
    probes.sweep(at=later)
    assert ClusterProbe.objects.get(ended_at=None).cluster == north


def test_a_right_that_was_taken_away_is_told_a_day_later(
    north: Cluster, simulator: Simulator, sent: list[UUID]
) -> None:
    assert carried_out(asked(north, AT)).verdict == Verdict.WORKS
    simulator.fault(kind="forbid", verb="delete", resource="pods", count=0)
    probes.sweep(at=AT + probes.PROBED_EVERY)
    [probe] = ClusterProbe.objects.filter(ended_at=None)
    assert carried_out(probe).verdict == Verdict.FAILS


def test_the_message_is_sent_with_the_credential_and_names_no_more_than_the_probe(
    simulator: Simulator,
    sent: list[UUID],
    django_capture_on_commit_callbacks: Callable[..., Any],  # Any: a context
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        simulator.store_credential(factories.cluster("north"))
        assert sent == []
    assert sent == [ClusterProbe.objects.get().id]


# At the same time.


def at_once(*acts: Callable[[], object]) -> None:
    """Each in a thread and a transaction of its own, begun together; what is raised comes out."""
    together = threading.Barrier(len(acts))

    def done(act: Callable[[], object]) -> None:
        try:
            together.wait(PATIENCE_S)
            act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        for each in [threads.submit(done, act) for act in acts]:
            each.result(PATIENCE_S)


@pytest.mark.django_db(transaction=True)
def test_who_ask_at_once_get_the_same_probe() -> None:
    cluster = factories.cluster("north")
    found = []
    at_once(*(lambda: found.append(asked(cluster).id) for _ in range(4)))
    assert set(found) == {ClusterProbe.objects.get().id}
    assert len(found) == 4


@pytest.mark.django_db(transaction=True)
def test_asking_while_a_credential_is_stored_leaves_one_probe_of_the_new_one() -> None:
    cluster = factories.cluster("north")
    old, new = ({"server": "https://127.0.0.1:1", "token": word * 16} for word in "ab")
    store_credential(cluster, **old)
    ClusterProbe.objects.update(began_at=AT, tries=1, credential_version=1)
    at_once(lambda: asked(cluster), lambda: store_credential(cluster, **new))
    [probe] = ClusterProbe.objects.filter(ended_at=None)
    assert (probe.tries, probe.credential_version) == (0, None)
