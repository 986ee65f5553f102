"""Nodes that say of themselves what can't be: they are left out, and told; the others stay."""

import pytest

from tests.hostile.acts import Json, body, listing
from tests.hostile.lab import Lab
from tests.hostile.test_lists import NODES, PODS
from tests.waiting import eventually


def node(
    name: object = "bad", *, gpus: object = "8", labels: object = None, **amounts: object
) -> Json:
    held = {} if gpus is None else {"nvidia.com/gpu": gpus}
    allocatable = {"cpu": "64", "memory": "256Gi", **held, **amounts}
    product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return {
        "metadata": {
            "name": name,
            "uid": "u-bad",
            "labels": product if labels is None else labels,
        },
        "spec": {},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


NONSENSE = {
    "negative GPUs": (node(gpus="-8"), "bad: '-8' is negative"),
    "ten thousand GPUs": (node(gpus="10000"), "bad: more than 128 devices"),
    "GPUs beyond all": (node(gpus="9" * 18 + "E"), "larger than anything real"),
    "a wordy number of GPUs": (node(gpus="eight"), "'eight' is no quantity"),
    "GPUs as a list": (node(gpus=["8"]), "nvidia.com/gpu is no quantity"),
    "a fraction that is none": (node(cpu="1.5.2"), "'1.5.2' is no quantity"),
    "a unit that is none": (node(memory="5Xi"), "'5Xi' is no quantity"),
    "memory to the power": (node(memory="1e99"), "larger than anything real"),
    "negative memory": (node(memory="-1Gi"), "'-1Gi' is negative"),
    "a name of ten kilobytes": (node("n" * 10_000), "name is no name"),
    "a name with control characters": (node("n\x00\x1b[31m\n"), "n??[31m: name is no name"),
    "a name in markup": (node("<script>alert(1) </script>"), "name is no name"),
    "a number for a name": (node(7), "one without a name: name is no name"),
    "a tree for a name": (node([[[{}]]]), "one without a name: name is no name"),
    "nothing at all": (None, "one without a name: it is no object"),
    "two thousand kinds of slices": (
        node(**{f"nvidia.com/mig-{nth % 90 + 1}g.{nth + 1}gb": "2" for nth in range(2000)}),
        "more than 2048 MIG slices",
    ),
    "a million shares": (
        node(
            gpus=None,
            labels={"gpu.intel.com/device.count": "1"},
            **{"gpu.intel.com/i915": "1000000"},
        ),
        "more than 1000 shares of a device",
    ),
}


def test_a_node_that_makes_no_sense_is_left_out_and_told(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    known = lab.inventory()
    for name, (bad, told) in NONSENSE.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(NODES, body(listing([*lab.nodes(), bad])))
            lab.left_out("nodes", told)
            lab.works()
            assert lab.inventory() == known


ODD = {
    "labels that are none": node(labels=["x"]),
    "labels of all kinds": node(labels={"a": 1, "b\x00": "c", "d": "e" * 300, "": ""}),
    "ten thousand labels": node(labels={f"k{nth}": "v" * 200 for nth in range(10_000)}),
    "a model of 250 letters": node(labels={"nvidia.com/gpu.product": "M" * 250}),
    "half a GPU": node(gpus="500m"),
    "unit-less cores": node(cpu="64000"),
}


def test_a_node_that_is_odd_is_taken_as_far_as_it_makes_sense(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    for name, odd in ODD.items():
        with subtests.test(name), lab.followed():
            lab.server.behave(NODES, body(listing([*lab.nodes(), odd])))
            eventually("it is there", lambda: lab.has_node("bad"))
            lab.works()
            lab.server.behave(NODES, body(listing(lab.nodes())))
            eventually("it is gone", lambda: not lab.has_node("bad"))


def test_of_two_nodes_of_one_name_there_is_one(lab: Lab) -> None:
    known = lab.inventory()
    with lab.followed():
        lab.server.behave(NODES, body(listing([*lab.nodes(), *lab.nodes()])))
        eventually("it was listed", lambda: lab.server.asked)
        lab.works()
        assert lab.inventory() == known


PODLESS: tuple[object, ...] = (
    None,
    7,
    "pod",
    [],
    {"metadata": None},
    {"metadata": {"name": "a\x00b", "uid": "u"}},
)


def test_a_pod_that_makes_no_sense_is_left_out_and_told(
    lab: Lab, subtests: pytest.Subtests
) -> None:
    for bad in PODLESS:
        with subtests.test(repr(bad)), lab.followed():
            lab.server.behave(PODS, body(listing([bad, *lab.pods()])))
            lab.left_out("pods", "1 pod of its list makes no sense")
            lab.works()
