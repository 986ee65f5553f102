"""Probes of exposure as rows: asked for with each probe, carried on in steps, believed no longer
than they hold."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from clusters.models import Cluster, Exposure, ExposureVerdict
from clusters.port import NodeReport
from clusters.services import exposing, exposures, probes
from controlplane.audit.models import AuditEvent
from controlplane.kernel import clock, hints
from scheduler import tasks
from tests import factories
from tests.simulation import Simulator, simulator
from tests.waiting import eventually

__all__ = ["simulator"]

pytestmark = [pytest.mark.part_simulator, pytest.mark.django_db]
SAW = ["/dev/nvidia0", "GPU 0: H100"]


@pytest.fixture
def north(simulator: Simulator) -> Cluster:
    cluster = factories.cluster("north")
    simulator.store_credential(cluster)
    return cluster


def step(cluster: Cluster) -> Exposure:
    tasks.probe_exposure(cluster_id=str(cluster.id))
    return Exposure.objects.get(cluster=cluster)


def ended(cluster: Cluster) -> Exposure:
    """The row, once its probe has come to an end."""

    def over() -> Exposure | None:
        row = step(cluster)
        return row if row.asked_at is None else None

    return eventually("the probe ended", over)


def ask(cluster: Cluster) -> None:
    probes.ask(cluster=cluster, actor_name="oz", at=clock.now())


def expose(simulator: Simulator, *nodes: str, saw: list[str]) -> None:
    for node in nodes:
        simulator.fault(kind="expose-node", node=node, saw=saw)


def node_names(simulator: Simulator) -> list[str]:
    return [one.name for one in simulator.connect().list_nodes().items if one.devices]


def late(cluster: Cluster) -> None:
    waited = Now() - exposures.WITHIN - timedelta(seconds=1)
    Exposure.objects.filter(cluster=cluster).update(timed_from=waited)


def test_a_credential_that_is_stored_has_it_probed_and_nothing_is_left(
    north: Cluster, simulator: Simulator
) -> None:
    waits = Exposure.objects.get()
    assert (waits.verdict, waits.asked_by, waits.pod_uid) == (ExposureVerdict.UNKNOWN, "test", "")
    begun = step(north)
    assert begun.pod_uid
    assert begun.verdict == ExposureVerdict.UNKNOWN
    row = ended(north)
    assert (row.verdict, row.saw, row.why) == (ExposureVerdict.SAFE, [], "")
    assert sorted(row.answers) == sorted(node_names(simulator))
    assert (row.node, row.pod_uid) == ("", "")
    assert simulator.connect().read_exposure_probe() is None
    assert not AuditEvent.objects.filter(action="cluster.exposure").exists()


def test_a_pod_that_sees_devices_makes_the_cluster_unsafe_until_that_node_is_mended(
    north: Cluster, simulator: Simulator
) -> None:
    first, second = sorted(node_names(simulator))[:2]
    expose(simulator, first, saw=SAW)
    row = ended(north)
    assert (row.verdict, row.saw, row.node) == (ExposureVerdict.UNSAFE, SAW, first)
    [told] = AuditEvent.objects.filter(action="cluster.exposure")
    assert told.after == {"verdict": "unsafe", "node": first, "saw": SAW}
    assert (row.answers[second]["saw"], row.why) == ([], "")

    ask(north)
    assert step(north).tried_node == first
    assert ended(north).verdict == ExposureVerdict.UNSAFE
    simulator.fault(kind="cordon-node", node=first)
    ask(north)
    row = ended(north)
    assert (row.verdict, row.node) == (ExposureVerdict.UNSAFE, first)
    assert row.why.endswith(f" were looked at. {first}: it takes no pods now")

    simulator.fault(kind="cordon-node", node=first, cordoned=False)
    expose(simulator, first, saw=[])
    ask(north)
    row = ended(north)
    assert (row.verdict, row.saw, row.node) == (ExposureVerdict.SAFE, [], "")
    assert AuditEvent.objects.filter(action="cluster.exposure").count() == 2


def test_it_is_unsafe_until_each_node_is_mended(north: Cluster, simulator: Simulator) -> None:
    first, *others = sorted(node_names(simulator))
    expose(simulator, first, *others, saw=SAW)
    assert ended(north).unsafe_nodes == [first, *others]
    expose(simulator, first, saw=[])
    ask(north)
    row = ended(north)
    assert (row.verdict, row.node, row.saw) == (ExposureVerdict.UNSAFE, others[0], SAW)
    assert row.unsafe_nodes == others


def test_a_node_whose_device_plugin_is_down_is_not_gone(
    north: Cluster, simulator: Simulator
) -> None:
    first = min(node_names(simulator))
    expose(simulator, first, saw=SAW)
    ended(north)
    simulator.fault(kind="set-allocatable", node=first, resources={"nvidia.com/gpu": "0"})
    assert first not in node_names(simulator)
    ask(north)
    assert ended(north).unsafe_nodes == [first]
    simulator.fault(kind="delete-node", node=first)
    ask(north)
    assert ended(north).verdict == ExposureVerdict.SAFE


def test_a_node_that_nobody_looked_at_makes_it_unknown(
    north: Cluster, simulator: Simulator
) -> None:
    first, *others = sorted(node_names(simulator))
    simulator.fault(kind="cordon-node", node=first)
    row = ended(north)
    assert row.verdict == ExposureVerdict.UNKNOWN
    said = f"{len(others)} of {len(others) + 1} nodes with devices were looked at."
    assert row.why == f"{said} {first}: it takes no pods now"


def test_an_answer_is_stored_before_its_pod_is_taken_away(
    north: Cluster, simulator: Simulator
) -> None:
    first = min(node_names(simulator))
    expose(simulator, first, saw=SAW)
    simulator.fault(kind="forbid", verb="delete", resource="pods", count=0)
    row = eventually("it is unsafe", lambda: row if (row := step(north)).is_unsafe else None)
    assert (row.node, row.saw, row.tried_node) == (first, SAW, first)
    assert row.pod_uid
    late(north)
    row = ended(north)
    assert "cannot delete" in row.why
    assert row.is_unsafe
    assert row.pod_uid
    simulator.heal()
    exposures.sweep(at=clock.now())
    assert step(north).pod_uid == ""
    assert simulator.connect().read_exposure_probe() is None


def test_a_pod_that_was_taken_away_unread_is_made_again_there(
    north: Cluster, simulator: Simulator
) -> None:
    begun = step(north)
    simulator.connect().end_exposure_probe(uid=begun.pod_uid)
    again = step(north)
    assert (again.tried_node, again.pod_uid == begun.pod_uid) == (begun.tried_node, False)


def test_a_pod_that_never_runs_is_no_answer_and_is_taken_away(
    north: Cluster, simulator: Simulator
) -> None:
    ended(north)
    ask(north)
    full = min(node_names(simulator))
    simulator.fault(kind="set-allocatable", node=full, resources={"pods": "0"})
    assert step(north).asked_at is not None
    assert "Too many pods" in step(north).why
    late(north)
    row = ended(north)
    assert row.verdict == ExposureVerdict.UNKNOWN  # it was safe before
    assert f" {full}: The pod that looks did not come to its end within 10 minutes" in row.why
    assert "Too many pods" in row.why
    assert simulator.connect().read_exposure_probe() is None


def test_a_right_that_is_missing_is_told_once_its_time_is_over(
    north: Cluster, simulator: Simulator
) -> None:
    simulator.fault(kind="forbid", verb="create", resource="pods", count=0)
    begun = step(north)
    assert begun.asked_at is not None
    assert "cannot create" in begun.why
    late(north)
    row = ended(north)
    assert (row.verdict, row.why) == (ExposureVerdict.UNKNOWN, begun.why)


def test_a_pod_of_a_try_before_is_not_believed(north: Cluster, simulator: Simulator) -> None:
    stale = step(north).pod_uid
    simulator.store_credential(north)
    row = Exposure.objects.get()
    assert (row.pod_uid, row.credential_version) == ("", 2)
    assert step(north).pod_uid == ""  # that one was taken away
    fresh = step(north).pod_uid
    assert fresh not in {"", stale}
    assert ended(north).verdict == ExposureVerdict.SAFE


def test_another_credential_takes_back_that_it_was_safe_and_not_that_it_was_unsafe(
    north: Cluster, simulator: Simulator
) -> None:
    ended(north)
    simulator.store_credential(north)
    assert Exposure.objects.get().verdict == ExposureVerdict.UNKNOWN
    expose(simulator, *node_names(simulator), saw=SAW)
    ended(north)
    simulator.store_credential(north)
    assert Exposure.objects.get().verdict == ExposureVerdict.UNSAFE


def test_an_old_answer_is_believed_no_more(north: Cluster) -> None:
    ended(north)
    at = clock.now()
    exposures.sweep(at=at + timedelta(days=1, hours=23))
    assert Exposure.objects.get().verdict == ExposureVerdict.SAFE
    exposures.sweep(at=at + timedelta(days=2, seconds=1))
    assert Exposure.objects.get().verdict == ExposureVerdict.UNKNOWN


def test_a_cluster_that_fails_is_left_alone_for_ever_longer(
    north: Cluster, simulator: Simulator
) -> None:
    simulator.fault(kind="forbid", verb="get", resource="pods", count=0)
    Exposure.objects.update(timed_from=Now() - timedelta(seconds=45))
    assert "cannot get" in step(north).why
    assert not hints.begin(f"exposure:{north.id}", for_s=1)
    hints.end(f"exposure:{north.id}")


def test_what_nobody_carries_on_comes_to_its_end(north: Cluster) -> None:
    exposures.sweep(at=clock.now())
    assert Exposure.objects.get().asked_at is not None
    Exposure.objects.update(timed_from=Now() - exposures.GIVEN_UP_AFTER)
    exposures.sweep(at=clock.now())
    row = Exposure.objects.get()
    assert (row.asked_at, row.verdict) == (None, ExposureVerdict.UNKNOWN)
    assert "look whether one runs for the queue dispatch" in row.why


def test_it_is_probed_daily_with_all_else(north: Cluster) -> None:
    tasks.probe_cluster(probe_id=str(north.probes.get().id))
    ended(north)
    probes.sweep(at=clock.now() + timedelta(days=1, minutes=1))
    row = Exposure.objects.get()
    assert (row.asked_by, row.asked_at is None) == ("Berth", False)


def node(name: str) -> NodeReport:
    return NodeReport(
        name=name,
        hostname=name,
        uid=f"uid-{name}",
        ready=True,
        schedulable=True,
        cpu_milli=1,
        memory_mib=1,
    )


def test_without_a_node_that_has_devices_nobody_looks() -> None:
    assert exposing.chosen([node("n1")], row=Exposure()) is None
