"""The wall of a project, from the rows of its quotas and of the cluster's hardware: where slices
are cut as the mixed strategy has them, where as the single one does, where devices are shared."""

from collections import Counter

import pytest

from clusters.models import Flavor, FlavorKind, Isolation, Node
from scheduler.core.lifecycle import State
from scheduler.loop.dispatching import confine
from scheduler.models import Workload
from tenants.models import Quota
from tests import factories
from tests.scheduler.stage import Stage

L4 = "NVIDIA-L4"
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


@pytest.fixture(autouse=True)
def limited(stage: Stage) -> None:
    """Four whole devices of the sixteen."""
    Quota.objects.update(nominal_milli=4000, borrowing_limit_milli=0)


def cut(stage: Stage, name: str, *, single: bool = False) -> Node:
    """A node with one device that is cut into slices: of one profile, as `single` has it, or of
    two."""
    node = factories.node(stage.cluster, name, gpus=1, mode="mig-static", mig_single=single)
    device = node.devices.get()
    for start in range(7 if single else 4):
        factories.device_slice(device, "1g.10gb", start, start + 1)
    if not single:
        factories.device_slice(device, "3g.40gb", 4, 8)
    stage.hardware_changed()
    return node


def shared(stage: Stage) -> Node:
    """A node with two devices of four replicas each."""
    made = factories.node(
        stage.cluster, "shared", gpus=2, model=L4, share_replicas=4, share_resource=SHARED,
        share_isolation=Isolation.NONE,
    )  # fmt: skip
    stage.hardware_changed()
    return made


def share(*, isolation: Isolation = Isolation.NONE) -> Flavor:
    return factories.flavor("share", FlavorKind.SHARE, model=L4, isolation=isolation)


def may_hold(stage: Stage, flavor: Flavor, milli: int) -> None:
    factories.quota(stage.project, flavor, milli, borrowing_limit_milli=0)


def due(stage: Stage) -> dict[str, int]:
    """What the rows come to now."""
    spaces = {stage.project.id: stage.project.namespace}
    found = confine.due(cluster_id=stage.cluster.id, projects=spaces)
    return dict(found[stage.project.id].wanted.limits)


def reached(stage: Stage, *works: Workload) -> tuple[dict[str, int], dict[str, int]]:
    """What the pods of all these ask for together once they are in the cluster, and the wall."""
    stage.cycle()
    stage.dispatch()
    for work in works:
        work.refresh_from_db()
        assert work.state == State.BOUND, work.reason
    asked: Counter[str] = Counter()
    for request in stage.port.requests.values():
        asked.update(dict(request.resources))
    return dict(asked), dict(stage.port.confined[stage.project.namespace].limits)


def test_slices_of_the_mixed_strategy_have_a_limit_by_profile(stage: Stage) -> None:
    cut(stage, "mixed")
    small, large = factories.mig_flavor("small"), factories.mig_flavor("large", "3g.40gb")
    may_hold(stage, small, 3000)
    may_hold(stage, large, 2000)
    asked, wall = reached(
        stage,
        stage.submit("a", flavor="small", count=3),
        stage.submit("b", flavor="large"),
        stage.submit("c", gpus=4),
    )
    assert asked == {SMALL: 3, LARGE: 1, GPU: 4}
    assert wall == {SMALL: 3, LARGE: 1, GPU: 4}, "of the larger slices there is one alone"


def test_slices_of_the_single_strategy_share_the_limit_of_whole_devices(stage: Stage) -> None:
    cut(stage, "single", single=True)
    may_hold(stage, factories.mig_flavor("small"), 3000)
    asked, wall = reached(
        stage, stage.submit("a", flavor="small", count=3), stage.submit("b", gpus=4)
    )
    assert asked == wall == {GPU: 7}


def test_a_profile_under_both_strategies_may_be_held_under_either(stage: Stage) -> None:
    cut(stage, "mixed")
    cut(stage, "single", single=True)
    may_hold(stage, factories.mig_flavor("small"), 5000)
    assert due(stage) == {SMALL: 4, LARGE: 0, GPU: 4 + 5}


def test_shares_have_a_limit_of_replicas(stage: Stage) -> None:
    shared(stage)
    may_hold(stage, share(), 1500)
    asked, wall = reached(stage, stage.submit("a", flavor="share", count=2, gpu_milli=750))
    assert asked == {SHARED: 6}
    assert wall == {SHARED: 8, GPU: 4}, "all that there are: a share may take one a thousandth"


def test_few_thousandths_are_as_many_replicas(stage: Stage) -> None:
    shared(stage)
    may_hold(stage, share(), 3)
    assert due(stage) == {SHARED: 3, GPU: 4}


def test_whole_devices_that_are_shared_are_all_of_their_replicas(stage: Stage) -> None:
    shared(stage)
    may_hold(stage, factories.flavor("l4", model=L4), 1000)
    asked, wall = reached(stage, stage.submit("a", flavor="l4"))
    assert asked == {SHARED: 4}
    assert wall == {SHARED: 4, GPU: 4}


def test_shares_that_nothing_there_isolates_so_have_none(stage: Stage) -> None:
    shared(stage)
    may_hold(stage, share(isolation=Isolation.MEMORY), 1500)
    assert due(stage) == {SHARED: 0, GPU: 4}
