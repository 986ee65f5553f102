"""The probe: what works is said to work, and of what does not, the one thing that is wrong."""

from collections.abc import Iterable

import pytest

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.rights import RIGHTS, Right
from clusters.port import ProbeStep, Verdict
from tests.contract.stage import Stage
from tests.kube.waiting import eventually

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
    with stage.lacking(right) as lacking:
        port = stage.connect(token=lacking.token, installation=lacking.installation)
        [missing] = failed(seen(port))
        port.close()
    assert missing.name == str(right)
    assert missing.said.startswith(f"may not {right}: add the verb to the ClusterRole ")


def seen(port: KubernetesCluster) -> tuple[ProbeStep, ...]:
    """A probe once the server has seen the account's role, which it does as a whole."""

    def probed() -> tuple[ProbeStep, ...] | None:
        steps = tuple(port.probe())
        works = {step.name for step in steps if step.verdict is Verdict.WORKS}
        granted = works & NAMES_OF_RIGHTS
        return steps if granted else None

    return eventually("the role is seen", probed)


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
