"""What is told of lost work that ran on slices: GPU time, a slice as part of a GPU."""

from datetime import timedelta

import pytest

from clusters.models import Device, DeviceMode
from clusters.port import PodPhase
from clusters.services import clusters
from scheduler.loop.observing import requeue
from scheduler.models import Attempt, WorkloadEvent
from tests import factories
from tests.factories import AT
from tests.flows.losing import silence
from tests.scheduler.stage import LATER, Stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sliced(stage: Stage) -> Stage:
    """Its devices make slices on demand; there is a flavor of sevenths and one of halves."""
    Device.objects.update(mode=DeviceMode.MIG_DYNAMIC)
    for name, profile in (("seventh", "1g.10gb"), ("half", "3g.40gb")):
        factories.quota(stage.project, factories.mig_flavor(name, profile), 16_000)
    stage.hardware_changed()
    return stage


def test_what_an_end_loses_is_told_in_parts_of_a_gpu(sliced: Stage) -> None:
    """Of two pods, each with a seventh, that ran for a minute."""
    workload = sliced.running(flavor="seventh", count=2)
    first, second = workload.placements.order_by("rank")
    sliced.observe(sliced.report(first, PodPhase.FAILED, reason="NodeLost", started_at=AT))
    sliced.dispatch()
    sliced.observe(sliced.report(second, PodPhase.FAILED, reason="Error", started_at=AT), at=LATER)
    assert Attempt.objects.get().lost_milli_s == -(-2 * 60_000 // 7)
    message = WorkloadEvent.objects.get(before="RUNNING").message
    assert message == "its node was lost: NodeLost; 0.005 GPU-hours of work lost"


def test_so_is_what_is_lost_with_a_cluster(sliced: Stage) -> None:
    sliced.running(flavor="half", cluster_loss_requeue_s=600)
    other = factories.cluster("south")
    factories.node(other, "s1")
    clusters.heard(cluster=other)
    silence(sliced.cluster, for_s=3600)
    assert requeue.requeue_lost(at=AT + timedelta(hours=2)) == 1
    lost = Attempt.objects.get().lost_milli_s
    assert 500 * 3590 <= lost <= 500 * 3600
