"""The port, where it cuts a node anew: the simulator's MIG manager, and one on a real API."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import yaml

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.rights import MIG_RIGHTS
from clusters.port import ClusterError, Fault, NodeReport, PodPhase, Verdict
from clusters.simulator.mig_manager import KEY
from tests.contract.stage import Stage
from tests.kube.mig_manager import CONFIG_MAP
from tests.waiting import eventually

HALVES = ({"3g.40gb": 2}, {"3g.40gb": 2})
WAY = "berth-mig-0123456789ab"


@pytest.fixture
def port(stage: Stage) -> Iterator[KubernetesCluster]:
    """Of an installation that may cut nodes anew, in a cluster with MIG managers."""
    with stage.recutting() as port:
        yield port


def seen(port: KubernetesCluster, name: str) -> NodeReport:
    node = port.read_node(name=name)
    assert node is not None
    return node


def told(port: KubernetesCluster, name: str) -> NodeReport:
    """The node, once its MIG manager has done what it could."""

    def done() -> NodeReport | None:
        node = seen(port, name)
        return node if node.mig_state in ("success", "failed") else None

    return eventually("the MIG manager has ended", done)


def patched(port: KubernetesCluster, name: str, act: Callable[[NodeReport], None]) -> None:
    """On the node as it is: a new one is changed by others, too."""

    def done() -> bool:
        try:
            act(seen(port, name))
        except ClusterError as error:
            if error.fault is not Fault.CONFLICT:
                raise
            return False
        return True

    eventually("the node is patched", done)


def cordon(port: KubernetesCluster, name: str) -> None:
    patched(port, name, lambda node: port.cordon(node=node, recut="one"))


def ways(stage: Stage) -> set[str]:
    text = stage.admin("GET", CONFIG_MAP)["data"][KEY]
    return set(yaml.safe_load(text)["mig-configs"])


def cut(port: KubernetesCluster, name: str, way: str = WAY) -> NodeReport:
    patched(port, name, lambda node: port.cut(node=node, config=way))
    return told(port, name)


def test_nothing_starts_on_a_node_that_is_cordoned_until_it_is_not(
    stage: Stage, port: KubernetesCluster
) -> None:
    name = stage.add_node(gpus=2)
    cordon(port, name)
    there = seen(port, name)
    assert (there.cordoned, there.schedulable, there.recut) == (True, False, "one")
    pod = stage.start(name, gpu=1)
    stage.wait(pod, PodPhase.UNSCHEDULABLE)
    patched(port, name, lambda node: port.uncordon(node=node))
    there = seen(port, name)
    assert (there.cordoned, there.recut) == (False, "")
    stage.wait(pod, PodPhase.RUNNING, PodPhase.SUCCEEDED)


def test_a_node_that_has_changed_since_is_left_alone(
    stage: Stage, port: KubernetesCluster
) -> None:
    name = stage.add_node()
    before = seen(port, name)
    cordon(port, name)
    for stale in (before, replace(seen(port, name), uid="11111111-2222-3333-4444-555555555555")):
        with pytest.raises(ClusterError) as refused:
            port.cut(node=stale, config=WAY)
        assert refused.value.fault is Fault.CONFLICT
    assert seen(port, name).mig_config == ""


def test_an_empty_node_is_cut_as_it_is_said(stage: Stage, port: KubernetesCluster) -> None:
    name = stage.add_node(gpus=1, mig={"1g.10gb": 7})
    assert WAY in port.write_mig_config(config=WAY, cuts=HALVES, keep=()).known
    there = cut(port, name)
    assert (there.mig_config, there.mig_state) == (WAY, "success")
    assert dict(there.mig_counts) == {"3g.40gb": 4}
    assert [device.mode for device in there.devices] == ["mig-static"] * 2


def test_a_device_may_be_left_whole(stage: Stage, port: KubernetesCluster) -> None:
    name = stage.add_node(gpus=1, mig={"1g.10gb": 7})
    port.write_mig_config(config=WAY, cuts=({}, {"7g.80gb": 1}), keep=())
    there = cut(port, name)
    assert dict(there.mig_counts) == {"7g.80gb": 1}
    assert sorted(device.mode for device in there.devices) == ["mig-static", "whole"]


def test_what_was_said_of_the_last_cut_is_not_taken_for_this_one(
    stage: Stage, port: KubernetesCluster
) -> None:
    name = stage.add_node(gpus=2)
    assert cut(port, name, "all-1g.10gb").mig_state == "success"
    assert cut(port, name, "berth-mig-ffffffffffff").mig_state == "failed"
    there = cut(port, name, "all-disabled")
    assert (there.mig_state, dict(there.mig_counts), len(there.devices)) == ("success", {}, 2)


def test_a_node_whose_device_is_held_is_not_cut(stage: Stage, port: KubernetesCluster) -> None:
    name = stage.add_node(gpus=2)
    stage.wait(stage.start(name, gpu=1, command=("sleep", "600")), PodPhase.RUNNING)
    there = cut(port, name, "all-1g.10gb")
    assert (there.mig_state, dict(there.mig_counts)) == ("failed", {})


def test_ways_of_others_stay_and_old_ones_of_ours_go(
    stage: Stage, port: KubernetesCluster
) -> None:
    others = "berth-another-0123456789ab"
    port.write_mig_config(config=others, cuts=HALVES, keep=())  # no name of this installation's
    port.write_mig_config(config="berth-mig-000000000001", cuts=HALVES, keep=())
    port.write_mig_config(
        config="berth-mig-000000000002", cuts=HALVES, keep={"berth-mig-000000000001"}
    )
    known = port.write_mig_config(config=WAY, cuts=HALVES, keep={"berth-mig-000000000002"}).known
    assert known == ways(stage)
    assert known >= {"all-disabled", "all-1g.10gb", others, "berth-mig-000000000002", WAY}
    assert "berth-mig-000000000001" not in known


def test_it_tells_whether_a_way_had_to_be_written(port: KubernetesCluster) -> None:
    def wrote(config: str, *cuts: Mapping[str, int], keep: tuple[str, ...] = ()) -> bool:
        return port.write_mig_config(config=config, cuts=cuts, keep=keep).wrote

    one, other = "berth-mig-00000000000a", "berth-mig-00000000000b"  # of no test beside this
    assert wrote(one, *HALVES)
    assert not wrote(one, *HALVES)
    assert wrote(one, {}, *HALVES), "another of its name"
    assert wrote(other, *HALVES, keep=(one,))
    assert not wrote(one, {}, *HALVES), "that another was taken away changes nothing of it"
    assert wrote(other, *HALVES)


def test_a_node_that_is_not_there_is_none(port: KubernetesCluster) -> None:
    assert port.read_node(name="nowhere") is None


def test_the_probe_says_that_nodes_may_be_cut_anew(stage: Stage, port: KubernetesCluster) -> None:
    [step] = [step for step in port.probe() if step.name == "recut"]
    assert step.verdict is Verdict.WORKS
    assert step.said == "Berth may cut nodes anew there"


def test_without_the_right_to_it_no_node_is_cordoned(
    stage: Stage, port: KubernetesCluster
) -> None:
    with (
        stage.lacking(MIG_RIGHTS[1]) as other,
        pytest.raises(ClusterError, match="nodes") as refused,
    ):
        other.cordon(node=seen(port, stage.add_node()), recut="one")
    assert refused.value.fault is Fault.FORBIDDEN
