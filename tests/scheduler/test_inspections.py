"""Inspections of pods: fetched by a worker because somebody asked, told to who sees the workload,
forgotten soon."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.inspection import LOG_KIB, LogTail
from clusters.models import ClusterState
from clusters.port import ClusterError, Fault, PodPhase
from controlplane.kernel import clock, hints
from controlplane.kernel.throttle import Throttle
from scheduler import tasks
from scheduler.core.lifecycle import State
from scheduler.models import Inspection, Placement
from scheduler.services import inspections
from tenants import access
from tests import factories
from tests.clusters.acting import opened, request, wait
from tests.conftest import Cast
from tests.factories import AT
from tests.simulation import Simulator, simulator

__all__ = ["simulator"]

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def nobody_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspections, "ASKED", Throttle(most=30, window=timedelta(minutes=1)))


@pytest.fixture
def placement(cast: Cast, simulator: Simulator) -> Placement:
    """Of a workload of Detection's that runs in north."""
    north = factories.cluster("north")
    simulator.store_credential(north)
    flavor = factories.flavor()
    running = factories.workload(cast.detection, cast.ben, [flavor], "train", state=State.RUNNING)
    return factories.place(running, factories.node(north, "h100-0"), flavor)


def run(placement: Placement, simulator: Simulator, **change: object) -> Placement:
    """Its pod, in the simulator, until it runs."""
    port = simulator.connect()
    namespace = placement.workload.project.namespace
    space = {"kind": "Namespace", "metadata": {"name": namespace}}
    simulator.call("POST", "/api/v1/namespaces", space)
    asked = replace(request(), namespace=namespace, name=placement.pod_name, **change)  # type: ignore[arg-type]  # by test
    pod = opened(port, asked)
    if not change:
        wait(port, pod, PodPhase.RUNNING)
    Placement.objects.filter(id=placement.id).update(pod_uid=pod.uid, opened_at=AT)
    placement.refresh_from_db()
    return placement


def says(simulator: Simulator, placement: Placement, **said: object) -> None:
    key = f"{placement.workload.project.namespace}/{placement.pod_name}"
    simulator.fault(kind="pod-says", pod=key, **said)


def ask(placement: Placement, cast: Cast) -> Inspection:
    return inspections.ask(
        actor=access.actor_for(user=cast.ben), placement=placement, at=clock.now()
    )


def fetched(row: Inspection) -> Inspection:
    tasks.inspect_pods(cluster_id=str(row.placement.attempt.cluster_id))
    row.refresh_from_db()
    return row


def test_events_and_log_are_fetched_and_put_in_place_of_older_ones(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator)
    says(simulator, placement, log="epoch 1\n")
    row = fetched(ask(placement, cast))
    assert (row.log, row.log_is_cut, row.log_why, row.events_why) == ("epoch 1\n", False, "", "")
    assert [event["reason"] for event in row.events][-1] == "Scheduled"
    assert row.asked_by == "ben"
    says(simulator, placement, log="epoch 2\n", events=[])
    again = ask(placement, cast)
    assert (again.id == row.id, again.ended_at, again.log, again.events) == (False, None, "", [])
    row = fetched(again)
    assert Inspection.objects.get().id == row.id
    assert (row.log, row.events) == ("epoch 2\n", [])


def test_one_that_is_under_way_is_the_answer(cast: Cast, placement: Placement) -> None:
    first = ask(placement, cast)
    again = ask(placement, cast)
    assert (again.id, again.asked_at) == (first.id, first.asked_at)


def test_a_cluster_is_asked_by_one_worker_and_once_for_each(
    cast: Cast,
    placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[object]],
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(hints, "send", lambda task, **_: sent.append(task))
    with django_capture_on_commit_callbacks(execute=True):
        row = ask(placement, cast)
        ask(placement, cast)
    assert sent == [hints.INSPECT_CLUSTER]
    work = f"inspect:{placement.attempt.cluster_id}"
    assert hints.begin(work, for_s=60)
    assert fetched(row).ended_at is None
    hints.end(work)
    assert fetched(row).ended_at is not None


def test_who_asks_all_the_time_is_told_to_wait(
    cast: Cast, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspections, "ASKED", Throttle(most=1, window=timedelta(minutes=1)))
    client = Client()
    client.force_login(cast.ben)
    url = reverse("pod-inspect", args=[placement.workload_id, placement.id])
    assert client.post(url).status_code == 303
    refused = client.post(url)
    assert refused.status_code == 429
    assert "At most 1 of these in 60 s" in refused.content.decode()
    api = APIClient()
    api.force_login(cast.ben)
    path = f"/api/v1/workloads/{placement.workload_id}/placements/{placement.id}/inspection"
    told = api.post(path)
    assert (told.status_code, told.json()["code"]) == (429, "too-often")


def test_what_was_read_before_the_time_limit_is_told(
    cast: Cast, placement: Placement, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(placement, simulator)

    def limit(*_: object, **__: object) -> LogTail:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(KubernetesCluster, "read_log", limit)
    row = fetched(ask(placement, cast))
    assert row.events
    assert (row.events_why, row.log_why.startswith("Fetching it was cut short")) == ("", True)
    hints.end(f"inspect:{placement.attempt.cluster_id}")


def test_a_cluster_that_is_out_of_reach_is_waited_for_once(
    cast: Cast, placement: Placement, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(placement, simulator)
    flavor, workload = placement.flavor, placement.workload
    other = factories.workload(workload.project, cast.ben, [flavor], "b", state=State.RUNNING)
    another = factories.place(other, factories.node(placement.attempt.cluster, "n9"), flavor)
    asked = []

    def silent(*_: object, **__: object) -> None:
        asked.append(1)
        raise ClusterError(Fault.UNREACHABLE, "The cluster does not answer")

    monkeypatch.setattr(KubernetesCluster, "read_events", silent)
    monkeypatch.setattr(KubernetesCluster, "read_log", silent)
    waits = ask(another, cast)
    Inspection.objects.filter(id=waits.id).update(placement=another)
    row = fetched(ask(placement, cast))
    waits.refresh_from_db()
    assert asked == [1]
    assert (row.log_why, row.events_why) == ("The cluster does not answer",) * 2
    hints.end(f"inspect:{placement.attempt.cluster_id}")
    assert waits.ended_at is not None


def test_of_a_cluster_that_is_silent_it_is_told_at_once(cast: Cast, placement: Placement) -> None:
    placement.attempt.cluster.state = ClusterState.LOST
    row = ask(placement, cast)
    assert (row.ended_at is None, row.log_why) == (False, "north does not answer now.")


def test_a_pod_that_is_not_made_yet_is_told(cast: Cast, placement: Placement) -> None:
    row = fetched(ask(placement, cast))
    assert (row.log_why, row.events_why) == ("Its pod is not made yet.",) * 2


def test_what_may_not_be_read_is_told_for_itself(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator)
    simulator.fault(kind="forbid", verb="get", resource="pods/log", count=0)
    row = fetched(ask(placement, cast))
    assert (row.log, row.events_why) == ("", "")
    assert row.events
    assert row.log_why.startswith("Berth may not read them in north: who operates it can let it")
    assert "User" not in row.log_why


def test_a_pod_that_is_gone_and_one_that_has_not_started_say_so(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator, image="example.test/train:missing")
    assert "is waiting to start" in fetched(ask(placement, cast)).log_why
    simulator.call(
        "DELETE",
        f"/api/v1/namespaces/{placement.workload.project.namespace}/pods/{placement.pod_name}",
        {"gracePeriodSeconds": 0},
    )
    assert fetched(ask(placement, cast)).log_why == "The pod is gone from its cluster."


def test_a_cluster_that_does_not_answer_and_one_without_a_credential_say_so(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator)
    simulator.fault(
        kind="error", verb="list", resource="events", status=500, message="oh", count=0
    )
    assert "answered 500" in fetched(ask(placement, cast)).events_why
    placement.attempt.cluster.credential.delete()
    row = fetched(ask(placement, cast))
    assert (row.log_why, row.events_why) == ("Berth can't sign in to north.",) * 2


def test_what_nobody_takes_up_ends_and_what_is_old_is_forgotten(
    cast: Cast, placement: Placement
) -> None:
    row = ask(placement, cast)
    inspections.sweep(at=clock.now())
    row.refresh_from_db()
    assert row.ended_at is None
    Inspection.objects.update(timed_from=Now() - inspections.TAKEN_UP_WITHIN)
    inspections.sweep(at=clock.now())
    row.refresh_from_db()
    assert row.ended_at is not None
    assert row.log_why.startswith("No worker came to it")
    Inspection.objects.update(timed_from=Now() - inspections.KEPT + timedelta(seconds=30))
    inspections.sweep(at=clock.now())
    assert Inspection.objects.exists()
    Inspection.objects.update(timed_from=Now() - inspections.KEPT)
    inspections.sweep(at=clock.now())
    assert not Inspection.objects.exists()
    tasks.inspect_pods(cluster_id=str(placement.attempt.cluster_id))  # a message that comes late


def test_an_answer_of_a_try_before_is_dropped(cast: Cast, placement: Placement) -> None:
    old = ask(placement, cast)
    Inspection.objects.update(ended_at=clock.now())
    new = ask(placement, cast)
    inspections.end(old, at=clock.now(), log=LogTail("of the old one", is_cut=False))
    new.refresh_from_db()
    assert (new.ended_at, new.log) == (None, "")


def test_who_sees_the_workload_sees_its_pods_and_nobody_else(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator)
    says(simulator, placement, log="<script>alert(1)</script>")
    path = f"/api/v1/workloads/{placement.workload_id}/placements/{placement.id}/inspection"
    ben, cleo = APIClient(), APIClient()
    ben.force_login(cast.ben)
    cleo.force_login(cast.cleo)
    assert ben.get(path).status_code == 404
    assert ben.post(path).status_code == 202
    assert cleo.get(path).status_code == cleo.post(path).status_code == 404
    fetched(Inspection.objects.get())
    told = ben.get(path).json()
    assert told["log"] == "<script>alert(1)</script>"
    assert told["ended_at"]
    other = factories.workload(cast.detection, cast.ben, [placement.flavor])
    assert ben.get(path.replace(str(placement.workload_id), str(other.id))).status_code == 404


def test_the_page_asks_polls_and_shows_text_as_text(
    cast: Cast, placement: Placement, simulator: Simulator
) -> None:
    run(placement, simulator)
    hostile = "<script>alert(1)</script>"
    event = {"reason": hostile, "message": hostile, "type": "Warning", "count": 3}
    says(simulator, placement, log=hostile + "x" * LOG_KIB * 1024, events=[event])
    ben = Client()
    ben.force_login(cast.ben)
    arguments = [placement.workload_id, placement.id]
    url = reverse("pod-inspection", args=arguments)
    assert url in ben.get(reverse("workload-detail", args=arguments[:1])).content.decode()
    page = ben.get(url).content.decode()
    assert "when you ask" in page
    assert "every 2s" not in page
    assert ben.post(reverse("pod-inspect", args=arguments)).status_code == 303
    page = ben.get(url).content.decode()
    assert "a worker fetches them" in page
    assert "every 2s" in page
    row = fetched(Inspection.objects.get())
    assert row.log_is_cut
    says(simulator, placement, log=hostile)
    fetched(ask(placement, cast))
    page = ben.get(url).content.decode()
    assert hostile not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3
    assert "3 times" in page
    assert "every 2s" not in page
