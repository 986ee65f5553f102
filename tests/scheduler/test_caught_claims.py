"""Pods of others that claim devices of a driver: what they are charged for, and what they get."""

from dataclasses import replace

import pytest

from clusters.claiming import ClaimRequest, ClaimTemplateReport
from clusters.models import Device, Node
from clusters.port import Fault, PodPhase
from clusters.published import OF_CLASS, DeviceClassReport, Pin, Selected
from scheduler.core.lifecycle import State
from scheduler.loop.catching import catch
from scheduler.models import CaughtPod as Row
from scheduler.models import PlacementSpan, Workload
from tests.factories import AT
from tests.scheduler.caught_pods import made, refusal, take_in
from tests.scheduler.stage import Stage

WHOLE = ClaimRequest("gpu", "devices", "gpu", ("true",), 2, Selected("gpu.nvidia.com"))
CLAIMS = (("gpu", "two"),)


@pytest.fixture
def driven(stage: Stage) -> Stage:
    """A driver publishes all devices of its nodes."""
    Node.objects.update(device_driver="gpu.nvidia.com")
    for nth, device in enumerate(Device.objects.order_by("id")):
        Device.objects.filter(id=device.id).update(uuid=f"GPU-{nth}")
    stage.port.templates["two"] = ClaimTemplateReport((WHOLE,))
    return stage


def phase(stage: Stage) -> PodPhase:
    return stage.port.pods["a"].phase


def claims(stage: Stage) -> None:
    made(stage, "a", owner=None, resources=(), claims=CLAIMS)


def test_it_is_charged_for_what_its_template_says_and_gets_its_very_devices(driven: Stage) -> None:
    claims(driven)
    take_in(driven)
    [asked] = Workload.objects.get().pod_sets.all()
    assert (asked.gpu_count, [each.name for each in asked.flavors.all()]) == (2, ["h100"])
    # Whatever the template says later.
    driven.port.templates["two"] = ClaimTemplateReport((replace(WHOLE, count=8),))
    driven.cycle()
    driven.dispatch()
    assert phase(driven) is PodPhase.WAITING
    given = driven.port.given["a"]
    held = PlacementSpan.objects.values_list("device__uuid", flat=True)
    assert given.requests == (WHOLE,)
    assert set(given.pins) == {Pin("gpu.nvidia.com", uuid) for uuid in held}
    assert len(given.pins) == 2
    work = Workload.objects.get()
    assert given.prefix == f"w{work.id.hex}-1-0"
    assert (given.workload, given.uid) == (str(work.id), driven.port.pods["a"].uid)


def test_its_gate_stays_shut_until_it_has_them(driven: Stage) -> None:
    claims(driven)
    take_in(driven)
    driven.cycle()
    driven.port.fails("give", Fault.SERVER, times=1)
    driven.dispatch()
    assert phase(driven) is PodPhase.GATED
    driven.release_claims()
    driven.dispatch()
    assert phase(driven) is PodPhase.WAITING


def test_a_pod_that_claims_more_than_it_is_charged_for_starts_nothing(driven: Stage) -> None:
    claims(driven)
    take_in(driven)
    driven.cycle()
    Row.objects.update(said={**Row.objects.get().said, "requests": []})
    driven.dispatch()
    assert phase(driven) is PodPhase.GATED
    assert "claims devices by gpu, and is charged for those of none" in (
        Workload.objects.get().attempts.get().trouble
    )


def test_where_its_devices_are_not_published_any_more_it_waits(driven: Stage) -> None:
    claims(driven)
    take_in(driven)
    driven.cycle()
    Node.objects.update(device_driver="")
    driven.dispatch()
    assert phase(driven) is PodPhase.GATED
    assert Workload.objects.get().state == State.ADMITTED
    Node.objects.update(device_driver="gpu.nvidia.com")
    driven.release_claims()
    driven.dispatch()
    assert phase(driven) is PodPhase.WAITING


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (None, "There is no template two for its claim gpu."),
        (
            ClaimTemplateReport(refusal="It is odd."),
            "Its claim gpu is made from the template two. It is odd.",
        ),
        (
            ClaimTemplateReport((WHOLE, replace(WHOLE, selected=Selected("gpu.nvidia.com", "x")))),
            "It claims devices of several kinds. Ask for those of one flavor.",
        ),
        (
            ClaimTemplateReport((replace(WHOLE, selected=Selected("other.test")),)),
            "Of the devices that it claims none are flavors that a driver publishes on all nodes"
            " of north that have them. Ask for devices of one of those.",
        ),
    ],
)
def test_what_nobody_can_charge_is_refused(
    driven: Stage, report: ClaimTemplateReport | None, why: str
) -> None:
    driven.port.templates = {"two": report} if report else {}
    claims(driven)
    take_in(driven)
    assert refusal("a") == why


def test_so_are_claims_that_others_may_share_and_flavors_that_they_do_not_select(
    driven: Stage,
) -> None:
    made(driven, "shared", owner=None, resources=(), claims=(("gpu", ""),))
    made(driven, "flavored", owner=None, resources=(), claims=CLAIMS, flavors=("a100",))
    take_in(driven)
    assert refusal("shared") == "Others may share its claim gpu: name a template of claims."
    assert refusal("flavored").startswith("Of the devices that it claims h100 are flavors")


def test_where_a_node_has_a_device_plugin_for_such_devices_none_are_claimed(driven: Stage) -> None:
    Node.objects.filter(name="n1").update(device_driver="")
    claims(driven)
    take_in(driven)
    assert refusal("a").startswith("Of the devices that it claims none are flavors")


def test_a_template_that_can_not_be_read_now_is_read_again(driven: Stage) -> None:
    driven.port.fails("template", Fault.FORBIDDEN, times=1)
    claims(driven)
    take_in(driven)
    assert refusal("a") == "What it claims could not be read: template: forbidden"
    take_in(driven, at=AT + catch.AGAIN)
    assert Workload.objects.exists()


@pytest.mark.parametrize(
    "resource", ["gpu.test/any", f"{OF_CLASS}any", f"{OF_CLASS}unknown", "nvidia.com/mig-1g.10gb"]
)
def test_who_claims_devices_asks_for_no_others_besides(driven: Stage, resource: str) -> None:
    """Also not by a class of which nobody can tell what it chooses: the claim alone is charged."""
    driven.port.classes.append(DeviceClassReport("any", "gpu.test/any", unclear="chooses oddly"))
    made(driven, "a", owner=None, resources=((resource, 7),), claims=CLAIMS)
    take_in(driven)
    why = f"It claims devices, and asks for {resource} besides. Ask for devices in one way."
    assert refusal("a").startswith(why)


def test_while_classes_can_not_be_read_any_resource_may_be_of_devices(driven: Stage) -> None:
    driven.port.fails("classes", Fault.FORBIDDEN, times=1)
    made(driven, "a", owner=None, resources=(("gpu.test/any", 7),), claims=CLAIMS)
    take_in(driven)
    unread = "The device classes of north could not be read: classes: forbidden."
    assert refusal("a").endswith(unread)
    take_in(driven, at=AT + catch.AGAIN)  # it stands for no device
    assert Workload.objects.exists()


def test_who_claims_nothing_asks_for_network_cards_all_the_same(driven: Stage) -> None:
    published = Node.objects.order_by("id")[0]
    Device.objects.filter(node=published).update(model="another")
    Node.objects.exclude(id=published.id).update(device_driver="")
    driven.port.fails("classes", Fault.FORBIDDEN, times=1)
    resources = (("nvidia.com/gpu", 1), ("nvidia.com/hostdev", 1))
    made(driven, "a", owner=None, resources=resources)
    take_in(driven)
    assert Workload.objects.get().pod_sets.get().gpu_count == 1


def test_a_cluster_that_is_away_when_its_classes_are_asked_is_asked_for_nothing_more(
    driven: Stage,
) -> None:
    driven.port.fails("classes", Fault.UNREACHABLE, times=1)
    claims(driven)
    take_in(driven)
    assert refusal("a") == "What it claims could not be read: classes: unreachable"
    take_in(driven, at=AT + catch.AGAIN)
    assert Workload.objects.exists()


def test_a_cluster_that_is_away_is_asked_for_one_template(driven: Stage) -> None:
    driven.port.templates["other"] = ClaimTemplateReport((WHOLE,))
    for name, template in (("a", "two"), ("b", "two"), ("c", "other")):
        made(driven, name, owner=None, resources=(), claims=(("gpu", template),))
    driven.port.fails("template", Fault.UNREACHABLE, times=1)
    take_in(driven)
    assert {refusal(name) for name in "abc"} == {
        "What it claims could not be read: template: unreachable"
    }
    take_in(driven, at=AT + catch.AGAIN)
    assert Workload.objects.count() == 3
