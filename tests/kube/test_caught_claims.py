"""Work made in a real cluster that asks for devices by their class waits for Berth, is charged,
and runs on devices that a driver publishes."""

import pytest

from scheduler.core.lifecycle import State
from scheduler.models import CaughtPod, Placement, Workload
from tests.kube.api import Json
from tests.kube.claiming import bare, claiming, claims, given, granted, lab, placed, template
from tests.kube.lab import Lab
from tests.waiting import eventually

__all__ = ["granted", "lab"]


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_who_asks_by_a_resource_of_a_class_is_charged_and_gets_such_devices(
    lab: Lab, resource: str
) -> None:
    pod = lab.work.pod("train", gpus=0)
    [container] = pod["spec"]["containers"]
    container["command"] = ["sleep", "600"]
    container["resources"]["limits"] = {resource: "2"}
    assert lab.work.create(pod).status == 201
    assert lab.gated() == {"train"}
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    [asked] = work.pod_sets.all()
    assert (asked.gpu_count, [each.name for each in asked.flavors.all()]) == (2, ["h100"])
    assert Placement.objects.get(workload=work).amount_milli == 2000
    [given] = claims(lab).values()
    assert len(given) == 2


def test_a_class_that_nobody_can_read_is_refused_and_told(lab: Lab) -> None:
    pod = lab.work.pod("train", gpus=0)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    limits["deviceclass.resource.kubernetes.io/any"] = "1"
    assert lab.work.create(pod).status == 201
    lab.take_in()
    assert lab.gated() == {"train"}
    told = CaughtPod.objects.get().refusal
    assert told.endswith(
        "The device class any does not say type == 'gpu', or type == 'mig' and which profile."
    )


def test_a_pod_that_claims_devices_waits_is_charged_and_gets_the_very_ones(lab: Lab) -> None:
    template(lab, "two", count=2)
    bare(lab, "first", "two")
    lab.turn()
    first = lab.only()
    lab.until_state(first, State.RUNNING)
    assert Placement.objects.get(workload=first).amount_milli == 2000
    bare(lab, "second", "two")
    lab.turn()
    second = Workload.objects.exclude(id=first.id).get()
    lab.until(lambda: (Workload.objects.get(id=second.id).reason or {})["code"] == "quota-used")
    assert lab.gated() == {"second"}
    assert given(lab) == placed(first)
    lab.work.kube.admin.delete(f"{lab.work.path}/pods/first")
    lab.until_state(second, State.RUNNING)
    eventually("it was given its own", lambda: given(lab) == placed(second))


def test_so_do_the_pods_of_a_job(lab: Lab) -> None:
    template(lab, "one")
    jobs = f"/apis/batch/v1/namespaces/{lab.work.namespace}/jobs"
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sweep"}}
    pods = {"parallelism": 3, "completions": 3, "template": {"spec": claiming(lab, "one")}}
    lab.work.editor.create(jobs, {**body, "spec": pods})
    eventually("its pods are there", lambda: len(lab.gated()) == 3)
    lab.turn()
    work = lab.only()
    lab.until_state(work, State.RUNNING)
    assert given(lab) == placed(work)
    assert len(set().union(*given(lab))) == 3
    assert sum(each.amount_milli for each in Placement.objects.filter(workload=work)) == 3000


def test_who_makes_the_template_larger_gets_what_is_charged(lab: Lab) -> None:
    """Whatever claim was made for the pod, its placement's takes the place of that."""
    template(lab, "one", count=3)
    bare(lab, "train", "one")
    eventually("a controller made its claim", lambda: len(claims(lab)) == 1)
    template(lab, "one", count=1)
    lab.turn()
    work = lab.only()
    template(lab, "one", count=3)
    lab.until_state(work, State.RUNNING)
    assert Placement.objects.get(workload=work).amount_milli == 1000
    assert given(lab) == placed(work)
    assert len(given(lab)[0]) == 1


REFUSED: dict[str, tuple[Json, str]] = {
    "all": ({"allocationMode": "All"}, "asks for all devices: say how many (ExactCount)."),
    "other class": ({"deviceClassName": "none"}, "There is no device class none."),
    "unclear class": ({"deviceClassName": "any"}, "does not say type == 'gpu'"),
    "unclear selector": (
        {"selectors": [{"cel": {"expression": "device.driver != 'tpu'"}}]},
        """selects by "device.driver != 'tpu'", which Berth can't read.""",
    ),
    "taints": ({"tolerations": [{"operator": "Exists"}]}, "sets tolerations: leave that out."),
    "slices": (
        {"deviceClassName": "mig"},
        "Of the devices that it claims none are flavors",
    ),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_can_not_be_charged_stays_gated_and_is_told_why(lab: Lab, how: str) -> None:
    request, why = REFUSED[how]
    template(lab, "odd", **request)
    bare(lab, "train", "odd")
    lab.take_in()
    assert lab.gated() == {"train"}
    assert why in CaughtPod.objects.get().refusal


def test_so_does_what_names_a_template_that_is_not_there(lab: Lab) -> None:
    bare(lab, "train", "none")
    lab.take_in()
    assert CaughtPod.objects.get().refusal == "There is no template none for its claim gpu."
    template(lab, "none")
    lab.turn()
    lab.until_state(lab.only(), State.RUNNING)
