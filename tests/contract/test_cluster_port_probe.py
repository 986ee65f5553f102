"""The probe: what works is said to work, and of what does not, the one thing that is wrong."""

from collections.abc import Iterable

import pytest

from clusters.adapters.kubernetes.rights import (
    CLAIM_RIGHTS,
    CLASS_RIGHTS,
    OF_PARTS,
    RIGHTS,
    Right,
)
from clusters.parts import Part
from clusters.port import ProbeStep, Verdict
from tests.contract.stage import Stage

NAMES_OF_RIGHTS = {str(right) for right in RIGHTS}


def failed(steps: Iterable[ProbeStep]) -> list[ProbeStep]:
    return [step for step in steps if step.verdict is Verdict.FAILS]


def test_all_works_with_the_rights_of_the_manifest(stage: Stage) -> None:
    stage.add_node(gpus=8)
    steps = list(stage.port.probe())
    assert [step for step in steps if step.verdict is not Verdict.WORKS] == []
    assert [step.name for step in steps[:3]] == ["reach", "identity", "version"]
    assert {step.name for step in steps} >= {*NAMES_OF_RIGHTS, "make a namespace", "make a pod"}
    said = {step.name: step.said for step in steps}
    assert "system:serviceaccount:berth-system:berth" in said["identity"]
    assert "nodes, " in said["nodes"]


def test_nothing_is_left_behind(stage: Stage) -> None:
    before = stage.port.list_pods().items
    list(stage.port.probe())
    assert {pod.name for pod in stage.port.list_pods().items} == {pod.name for pod in before}
    spaces = stage.admin("GET", "/api/v1/namespaces")["items"]
    assert "berth-probe" not in {space["metadata"]["name"] for space in spaces}


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_the_one_right_that_is_missing_is_named_and_nothing_else(
    stage: Stage, right: Right
) -> None:
    with stage.lacking(right) as port:
        [missing] = failed(port.probe())
    assert missing.name == str(right)
    assert missing.said.startswith(f"may not {right}: add the verb to the ClusterRole ")


STEPS = {
    Part.MIG: "recut",
    Part.DRA: "certain devices",
    Part.CATCH: "catch",
    Part.AUTOSCALE: "autoscale",
    Part.LOGS: "logs",
}


@pytest.mark.parametrize("right", [right for part in Part for right in OF_PARTS[part]], ids=str)
def test_the_one_right_of_a_part_that_is_missing_is_warned_of_and_nothing_else(
    stage: Stage, right: Right
) -> None:
    """Each verb of each part's roles is taken out of them."""
    part = right.part
    assert part is not None
    with stage.lacking(right) as port:
        steps = {step.name: step for step in port.probe()}
    assert steps[STEPS[part]].verdict is Verdict.WARNING
    assert steps[STEPS[part]].said.startswith(f"it may not {right}, so ")
    assert steps[STEPS[part]].said.endswith(f"`manage.py cluster_manifest --{part}` prints")
    assert [name for name in STEPS.values() if "may not" in steps[name].said] == [STEPS[part]]
    assert failed(steps.values()) == []
    gated = "pods of others that ask for devices by a class or a template stay gated"
    assert (gated in steps[STEPS[part]].said) is (right in (*CLASS_RIGHTS, *CLAIM_RIGHTS))


def test_somebody_without_any_right_is_told_each(stage: Stage) -> None:
    if stage.simulated:
        stage.admin("POST", "/_simulator/faults", {"kind": "forbid", "count": 0})
        token = stage.token
    else:
        token = stage.without_right()
    port = stage.connect(token=token)
    assert {step.name for step in failed(port.probe())} == NAMES_OF_RIGHTS
    port.close()


def test_a_token_that_is_not_known_ends_the_probe(stage: Stage) -> None:
    port = stage.connect(token="nobodys-token-0123456789")
    steps = list(port.probe())
    assert [(step.name, step.verdict) for step in steps] == [
        ("reach", Verdict.WORKS),
        ("identity", Verdict.FAILS),
    ]
    assert steps[-1].said.startswith("the credential is not accepted, or no longer")
    port.close()
