"""Pods that others made become workloads, are taken over as their placements' pods, or are told
why not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from clusters.models import FlavorKind, Node
from clusters.port import Fault, PodPhase
from clusters.published import DeviceClassReport, Selected
from scheduler.core.lifecycle import State
from scheduler.loop.catching import catch
from scheduler.loop.catching.asking import Asks, Devices, Offers, Refused
from scheduler.loop.dispatching import collect
from scheduler.loop.reach import Reach
from scheduler.loop.watching import strays
from scheduler.models import CaughtPod as Row
from scheduler.models import Origin, Placement, Workload
from tenants.models import Project
from tests import factories
from tests.factories import AT
from tests.scheduler.caught_pods import GPUS, gang, made, owns, refusal, take_in
from tests.scheduler.stage import LATER, Stage


def devices(stage: Stage, asks: Asks, *, named: tuple[str, ...] = ()) -> Devices:
    return Offers(port=stage.port, cluster=stage.cluster, reach=Reach()).devices(
        asks=asks, named=named
    )


def test_a_workload_asks_for_what_its_pods_do_and_is_the_clusters_own(stage: Stage) -> None:
    owns(stage, master=1, worker=2)
    made(stage, "m", part="master", cpu_milli=0, memory_mib=0, grace_s=60, priority="high")
    made(stage, "w0", part="worker", grace_s=5, priority="high")
    take_in(stage)
    work = Workload.objects.get()
    assert (work.name, work.project, work.submitted_at) == ("train", stage.project, AT)
    assert (work.priority_class, work.grace_s, work.retry_limit) == ("high", 60, 0)
    assert [cluster.name for cluster in work.clusters.all()] == ["north"]
    assert [
        (each.name, each.count, each.min_count, each.cpu_milli, each.memory_mib, each.gpu_count)
        for each in work.pod_sets.order_by("position")
    ] == [("master", 1, 1, 1, 1, 4), ("worker", 2, 2, 1000, 512, 4)]
    assert not work.submitted_by.is_active
    origin = Origin.objects.get()
    assert (origin.kind, origin.name, origin.uid, origin.creator) == (
        "Job",
        "train",
        "job-1",
        "ada",
    )
    stage.cycle()
    work.refresh_from_db()
    assert work.reason is not None
    assert (work.reason["code"], work.reason["numbers"]) == (
        "gathering",
        {"missing_count": 1, "wanted_count": 3},
    )


def test_no_workload_is_made_before_each_part_has_shown_what_it_asks_for(stage: Stage) -> None:
    owns(stage, master=1, worker=1)
    made(stage, "w", part="worker")
    take_in(stage)
    assert refusal("w") == "No pod of its part master is there yet."
    made(stage, "m", part="master")
    take_in(stage)
    assert Row.objects.filter(pod_set__workload=Workload.objects.get()).count() == 2


def test_the_same_pods_seen_again_change_nothing(stage: Stage) -> None:
    gang(stage, "a", "b")
    take_in(stage)
    assert (Workload.objects.count(), Row.objects.count()) == (1, 2)


def test_pods_outside_projects_are_nobodys_to_start(stage: Stage) -> None:
    made(stage, "a", namespace="berth-system")
    take_in(stage)
    assert not Row.objects.exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"priority": "top"}, "Its label says priority 'top'; known: low, normal, high, urgent."),
        ({"flavors": ("v100",)}, "There is no flavor 'v100'; known: h100."),
        ({"resources": (("amd.com/gpu", 1),)}, "It asks for amd.com/gpu: devices that no flavor"),
        ({"resources": (("nvidia.com/gpu", 9),)}, "Larger than the hardware"),
    ],
)
def test_what_would_be_refused_as_a_submission_stays_gated_and_is_told_why(
    stage: Stage, said: dict[str, Any], why: str
) -> None:
    owns(stage, all=1)
    made(stage, "a", **said)
    take_in(stage)
    assert refusal("a").startswith(why)
    assert not Workload.objects.exists()
    assert stage.port.calls["delete"] == 0


def test_a_cap_on_who_waits_is_kept_and_tried_again_later(stage: Stage) -> None:
    Project.objects.update(max_pending=1)
    other = stage.submit("other")
    owns(stage, all=1)
    made(stage, "a")
    take_in(stage)
    assert "has 1 pending workloads" in refusal("a")
    stage.cancel(other)
    take_in(stage)
    assert Workload.objects.count() == 1  # not so soon
    take_in(stage, at=AT + catch.AGAIN)
    assert Workload.objects.count() == 2


def test_an_owner_that_can_not_be_asked_now_is_asked_again(stage: Stage) -> None:
    owns(stage, all=1)
    made(stage, "a")
    stage.port.fails("owner", Fault.THROTTLED, times=1)
    take_in(stage)
    assert not Workload.objects.exists()
    take_in(stage, at=AT + catch.AGAIN)
    assert Workload.objects.exists()


def test_its_placements_get_its_pods_and_no_other_is_made(stage: Stage) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    stage.dispatch()
    work.refresh_from_db()
    assert work.state == State.BOUND
    assert set(stage.port.pods) == {"a", "b"}
    assert stage.port.services == {}  # whoever made them has them find each other
    for placement in Placement.objects.all():
        [pod] = [pod for pod in stage.port.pods.values() if pod.rank == placement.rank]
        assert (pod.workload, pod.attempt) == (str(work.id), 1)
        assert (pod.uid, pod.phase) == (placement.pod_uid, PodPhase.WAITING)
        assert pod.node == placement.node.hostname


def test_none_is_opened_before_all_are_taken_over(stage: Stage) -> None:
    gang(stage, "a", "b")
    stage.cycle()
    stage.port.fails("adopt", Fault.SERVER, pod="b", times=1)
    stage.dispatch()
    assert {pod.phase for pod in stage.port.pods.values()} == {PodPhase.GATED}
    stage.release_claims()
    stage.dispatch()
    assert {pod.phase for pod in stage.port.pods.values()} == {PodPhase.WAITING}


def test_a_pod_that_was_made_anew_meanwhile_takes_the_place_of_the_other(stage: Stage) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    made(stage, "b")  # another of its name
    stage.dispatch()
    assert {pod.phase for pod in stage.port.pods.values()} == {PodPhase.GATED}
    take_in(stage, at=AT + catch.AGAIN)
    stage.release_claims()
    stage.dispatch()
    work.refresh_from_db()
    assert work.state == State.BOUND
    assert {pod.phase for pod in stage.port.pods.values()} == {PodPhase.WAITING}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cpu_milli": 2000}, "asks for 2000m cores"),
        ({"resources": (("nvidia.com/gpu", 8),)}, "'nvidia.com/gpu': 8"),
        ({"resources": (*GPUS, ("nvidia.com/mig-1g.10gb", 1))}, "'nvidia.com/mig-1g.10gb': 1"),
        ({"phase": PodPhase.WAITING}, "somebody else opened the gate of a"),
    ],
)
def test_a_pod_that_is_not_what_is_charged_for_starts_nothing(
    stage: Stage, change: dict[str, Any], why: str
) -> None:
    work = gang(stage, "a", "b")
    stage.cycle()
    stage.port.pods["a"] = replace(stage.port.pods["a"], **change)
    stage.dispatch()
    assert stage.port.pods["b"].phase is PodPhase.GATED
    stage.release_claims()
    stage.dispatch()
    stage.relist()
    work.refresh_from_db()
    assert work.state == State.FAILED
    assert why in work.attempts.get().trouble
    assert "a" in stage.port.pods  # what it has not taken over is not its to delete


def test_what_ended_is_its_owners_to_keep(stage: Stage) -> None:
    work = gang(stage, "a")
    stage.cycle()
    stage.dispatch()
    of = stage.port.pods["a"]
    stage.observe(replace(of, phase=PodPhase.SUCCEEDED, started_at=AT, finished_at=LATER))
    work.refresh_from_db()
    assert work.state == State.SUCCEEDED
    for _ in range(3):
        work.attempts.exclude(leftover="").update(collect_at=AT)
        collect.collect(port=stage.port, cluster_id=stage.cluster.id)
    assert work.attempts.get().leftover == ""
    assert stage.port.calls["delete"] == 0


def test_one_that_is_gated_under_labels_of_an_attempt_that_ended_is_no_stray(stage: Stage) -> None:
    made(stage, "a", installation="berth", workload=str(uuid4()), attempt=1)
    reports = stage.port.list_pods().items
    assert strays.delete(port=stage.port, reports=reports, at=AT + strays.AGE) == 0
    owns(stage, all=1)
    take_in(stage)
    assert Workload.objects.exists()


def test_further_pods_of_an_owner_are_other_work_once_the_first_has_ended(stage: Stage) -> None:
    work = gang(stage, "a")
    made(stage, "b")
    take_in(stage)
    assert refusal("b") == "Job train has all its 1 pods; this is one more."
    stage.cancel(work)
    take_in(stage, at=AT + catch.AGAIN)
    other = Workload.objects.exclude(id=work.id).get()
    assert Row.objects.filter(name="b", pod_set__workload=other).exists()


def test_bare_pods_that_go_cancel_their_work(stage: Stage) -> None:
    made(stage, "a", owner=None)
    take_in(stage)
    stage.port.pods.clear()
    take_in(stage)
    work = Workload.objects.get()
    assert (work.state, work.events.latest("id").message) == ("CANCELLED", "its pods were deleted")


def test_work_whose_owner_is_not_known_now_goes_on_waiting(stage: Stage) -> None:
    work = gang(stage, "a", "b")
    del stage.port.pods["b"]
    stage.port.fails("owner", Fault.UNREACHABLE)
    take_in(stage)
    work.refresh_from_db()
    assert work.state == State.PENDING
    stage.port.heal()
    stage.port.owners.clear()
    take_in(stage)
    work.refresh_from_db()
    assert work.state == State.CANCELLED


@pytest.mark.parametrize(
    ("node", "resource", "count", "expected"),
    [
        ({}, "nvidia.com/gpu", 4, (4, 1000, ("h100",))),
        ({}, "nvidia.com/mig-1g.10gb", 2, (2, 1000, ("h100.1g",))),
        (
            {"share_replicas": 4, "share_resource": "nvidia.com/gpu.shared"},
            "nvidia.com/gpu.shared",
            1,
            (1, 250, ("h100.share",)),
        ),
        (
            {"share_replicas": 4, "share_resource": "nvidia.com/gpu.shared"},
            "nvidia.com/gpu.shared",
            4,
            (1, 1000, ("h100.share",)),
        ),
        ({"gpu_resource": "amd.com/gpu"}, "amd.com/gpu", 1, (1, 1000, ("h100",))),
    ],
)
def test_flavors_are_those_that_the_cluster_has_for_what_is_asked(
    stage: Stage,
    node: dict[str, Any],
    resource: str,
    count: int,
    expected: tuple[int, int, tuple[str, ...]],
) -> None:
    factories.mig_flavor("h100.1g")
    factories.flavor("h100.share", FlavorKind.SHARE)
    factories.flavor("a100", FlavorKind.WHOLE, model="NVIDIA-A100")
    Node.objects.update(**node)
    asks = Asks(1000, 512, ((resource, count),))
    found = devices(stage, asks)
    assert (found.gpu_count, found.gpu_milli, found.flavors) == expected
    assert devices(stage, asks, named=("x",)).flavors == ("x",)


def test_devices_of_two_kinds_are_refused_and_network_cards_beside_them_are_not(
    stage: Stage,
) -> None:
    factories.mig_flavor("h100.1g")
    both = Asks(1000, 512, (("nvidia.com/gpu", 1), ("nvidia.com/mig-1g.10gb", 1)))
    with pytest.raises(Refused, match="devices of several kinds"):
        devices(stage, both)
    nobodys = Asks(1000, 512, (("nvidia.com/gpu", 1), ("nvidia.com/mig-9g.1gb", 4)))
    with pytest.raises(Refused, match="devices of several kinds"):
        devices(stage, nobodys)
    beside = Asks(1000, 512, (("nvidia.com/gpu", 1), ("nvidia.com/roce", 1)))
    assert devices(stage, beside).flavors == ("h100",)


def published(stage: Stage, *classes: DeviceClassReport) -> None:
    Node.objects.update(device_driver="gpu.nvidia.com")
    stage.port.classes = list(classes)


BY_CLASS = DeviceClassReport("gpu", "nvidia.com/gpu", Selected("gpu.nvidia.com"))
ONE_GPU = Asks(1000, 512, (("nvidia.com/gpu", 1),))


def test_devices_that_a_driver_publishes_are_asked_for_by_their_class(stage: Stage) -> None:
    piece = factories.mig_flavor("h100.1g")
    cut = Selected("gpu.nvidia.com", piece.profile)
    published(stage, BY_CLASS, DeviceClassReport("mig", selected=cut))
    assert devices(stage, ONE_GPU) == Devices(1, 1000, ("h100",))
    for name, flavor in (("gpu", "h100"), ("mig", "h100.1g")):
        asks = Asks(1000, 512, ((f"deviceclass.resource.kubernetes.io/{name}", 2),))
        assert devices(stage, asks) == Devices(2, 1000, (flavor,))


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        ([], "devices that no flavor has in north. Ask for those of one flavor.$"),
        (
            [DeviceClassReport("gpu", "nvidia.com/gpu", None, "is odd")],
            "one flavor. The device class gpu is odd.$",
        ),
        (
            [BY_CLASS, replace(BY_CLASS, name="too")],
            "Several device classes stand for nvidia.com/gpu: gpu and another.$",
        ),
        ([replace(BY_CLASS, selected=Selected("gpu.nvidia.com", "", "A100"))], "no flavor has"),
        ([replace(BY_CLASS, selected=Selected("other.test"))], "no flavor has"),
    ],
)
def test_where_no_class_stands_for_them_they_are_refused(
    stage: Stage, classes: list[DeviceClassReport], why: str
) -> None:
    published(stage, *classes)
    with pytest.raises(Refused, match=why):
        devices(stage, ONE_GPU)


def test_so_are_they_where_berth_may_not_look_or_only_some_nodes_have_a_driver(
    stage: Stage,
) -> None:
    published(stage, BY_CLASS)
    stage.port.fails("classes", Fault.FORBIDDEN, times=1)
    with pytest.raises(Refused, match="no flavor has"):
        devices(stage, ONE_GPU)
    assert devices(stage, ONE_GPU).flavors == ("h100",)
    Node.objects.filter(name="n1").update(device_driver="")
    assert devices(stage, ONE_GPU).flavors == ("h100",)  # all are asked for by that name
    implicit = Asks(1000, 512, ((BY_CLASS.resources[1], 1),))
    with pytest.raises(Refused, match="no flavor has"):
        devices(stage, implicit)


def test_a_pod_that_asks_by_a_class_is_taken_as_it_asks(stage: Stage) -> None:
    published(stage, BY_CLASS)
    made(stage, "a", owner=None, resources=((BY_CLASS.resources[1], 1),))
    take_in(stage)
    stage.cycle()
    stage.dispatch()
    assert stage.port.pods["a"].phase is PodPhase.WAITING


def test_a_list_that_lacks_a_pod_forgets_it(stage: Stage) -> None:
    gang(stage, "a", "b")
    made(stage, "c")
    take_in(stage)
    del stage.port.pods["a"], stage.port.pods["c"]
    take_in(stage, at=AT + timedelta(seconds=5))
    assert {row.name: row.gone_at is None for row in Row.objects.all()} == {"a": False, "b": True}
