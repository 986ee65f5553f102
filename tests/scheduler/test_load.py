"""Rows → snapshot: what the planner is told of the tree of tenants."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import F
from pytest_django import Settings

from clusters.models import Cluster, Flavor, Node
from scheduler.core.snapshot import ClusterView, PastView, Placing, TopologyView
from scheduler.core.units import FlavorId, NodeId
from scheduler.models import Workload
from scheduler.selectors import fleet
from scheduler.selectors.load import load_here
from tenants.models import PastUse, Project, Quota, TenantQuota
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import Stage


def test_the_tree_of_tenants_is_loaded_with_its_weights(stage: Stage) -> None:
    lab = stage.project.tenant
    department = factories.tenant("Robots", parent=lab, weight=3)
    factories.project(department, "Arms")
    snapshot = load_here(at=AT).snapshot
    tree = {cohort.id: (cohort.parent, cohort.weight) for cohort in snapshot.cohorts}
    assert tree == {str(lab.id): (None, 1), str(department.id): (str(lab.id), 3)}
    assert {queue.cohort for queue in snapshot.queues} == set(tree)


@pytest.mark.parametrize(("weight", "started"), [(1, (8, 8)), (3, (12, 4))])
def test_a_heavier_tenant_borrows_in_proportion(
    stage: Stage, weight: int, started: tuple[int, int]
) -> None:
    """Two tenants borrow all 16 GPUs of a third, one GPU after the other."""
    Quota.objects.update(nominal_milli=16_000)
    borrowers = []
    for name, of in (("Heavy", weight), ("Light", 1)):
        project = factories.project(factories.tenant(name, weight=of), name)
        factories.quota(project, stage.flavor, 0)
        borrowers.append(project)
    for n in range(16):
        for project in borrowers:
            factories.workload(project, stage.ada, [stage.flavor], f"{project.slug}-{n}")
    stage.cycle()
    admitted = Workload.objects.filter(state="ADMITTED").values_list("project", flat=True)
    counted = Counter(admitted)
    assert tuple(counted[project.id] for project in borrowers) == started


def _used(stage: Stage, of: Project, *, days_ago: int, milli_s: int) -> None:
    day = (AT - timedelta(days=days_ago)).date()
    PastUse.objects.create(project=of, flavor=stage.flavor, day=day, milli_s=milli_s)


def test_what_was_used_is_loaded_as_what_is_left_of_it(stage: Stage) -> None:
    other = factories.project(stage.project.tenant, "Idle")
    _used(stage, stage.project, days_ago=7, milli_s=1000)
    _used(stage, stage.project, days_ago=0, milli_s=30)
    pasts = {queue.project: queue.past for queue in load_here(at=AT).snapshot.queues}
    left = PastView(FlavorId(str(stage.flavor.id)), 530)
    assert pasts == {str(stage.project.id): (left,), str(other.id): ()}


@pytest.mark.parametrize(("half_life", "first"), [(7, "frugal"), (0, "lavish")])
def test_of_two_with_equal_shares_who_used_less_starts_first(
    stage: Stage, settings: Settings, half_life: int, first: str
) -> None:
    """The lavish one submitted first: without a memory that decides."""
    settings.BERTH_HALF_LIFE_DAYS = half_life
    Quota.objects.update(nominal_milli=8000)
    for name, used in (("Lavish", 9_000_000), ("Frugal", 8_000_000)):
        project = factories.project(stage.project.tenant, name)
        factories.quota(project, stage.flavor, 0)
        _used(stage, project, days_ago=1, milli_s=used)
        factories.workload(project, stage.ada, [stage.flavor], name.lower(), gpus=8)
    stage.cycle()
    admitted = Workload.objects.filter(state="ADMITTED").values_list("name", flat=True)
    assert list(admitted) == [first]


def admitted() -> set[str]:
    rows = Workload.objects.filter(state="ADMITTED").values_list("name", flat=True)
    return set(rows)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({}, {"a", "b", "c"}, id="no limit: all that the fleet has"),
        pytest.param({"borrowing_limit_milli": 4000}, {"a", "b"}, id="both borrow 4 together"),
        pytest.param({"borrowing_limit_milli": 0}, {"a"}, id="the tenant's own 4 alone"),
    ],
)
def test_a_tenants_limits_bound_all_of_its_projects_together(
    stage: Stage, limits: dict[str, int], expected: set[str]
) -> None:
    """Two projects without any nominal quota ask for four GPUs three times; elsewhere 12 idle."""
    lab = stage.project.tenant
    Quota.objects.update(nominal_milli=0)
    second = factories.project(lab, "Second")
    factories.quota(second, stage.flavor, 0)
    elsewhere = factories.project(factories.tenant("Elsewhere"), "Idle")
    factories.quota(elsewhere, stage.flavor, 12_000)
    TenantQuota.objects.create(tenant=lab, flavor=stage.flavor, nominal_milli=4000, **limits)
    for name, project in (("a", stage.project), ("b", second), ("c", stage.project)):
        factories.workload(
            project,
            stage.ada,
            [stage.flavor],
            name,
            gpus=4,
            submitted_at=factories.AT.replace(minute=ord(name) - 97),
        )
    stage.cycle()
    assert admitted() == expected


def test_where_nodes_stand_is_loaded_level_by_level_and_whether_a_flavor_is_spread(
    stage: Stage, settings: Settings
) -> None:
    settings.BERTH_TOPOLOGY_LEVELS = {"zone": "topology.kubernetes.io/zone", "row": "a/row"}
    labels = {"a/row": "7", "topology.kubernetes.io/zone": "z1", "other": "x"}
    known = factories.node(stage.cluster, "known", labels=labels)
    part = factories.node(stage.cluster, "part", labels={"a/row": "7"})
    Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
    Flavor.objects.filter(id=stage.flavor.id).update(placing="spread")
    snapshot = load_here(at=AT).snapshot
    assert snapshot.levels == ("zone", "row")
    at = {node.id: node.topology for each in snapshot.clusters for node in each.nodes}
    assert (at[NodeId(str(known.id))], at[NodeId(str(part.id))]) == (("z1", "7"), ("", "7"))
    placing = {flavor.id: flavor.placing for flavor in snapshot.flavors}
    assert placing[FlavorId(str(stage.flavor.id))] is Placing.SPREAD


def test_what_has_to_be_together_is_loaded_while_it_waits_and_while_it_runs(stage: Stage) -> None:
    """It starts in the one rack that holds it, and would ask for the same again."""
    rack = "network.topology.nvidia.com/leaf"
    for name, of in (("a", "r1"), ("b", "r2"), ("c", "r2")):
        factories.node(stage.cluster, name, gpus=4, labels={rack: of})
    Node.objects.exclude(name__in=["a", "b", "c"]).update(ready=False)
    Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
    Quota.objects.update(nominal_milli=16_000)
    factories.workload(
        stage.project, stage.ada, [stage.flavor], pods=2, gpus=4, topology_level="rack",
        topology_required=True,
    )  # fmt: skip
    [waiting] = load_here(at=AT).snapshot.pending
    assert waiting.topology == TopologyView("rack", required=True)
    stage.cycle()
    [held] = load_here(at=AT).snapshot.holding
    assert held.topology == waiting.topology
    names = {str(node.id): node.name for node in Node.objects.all()}
    assert sorted(names[placement.node] for placement in held.placements) == ["b", "c"]


def test_what_has_not_changed_is_loaded_as_the_same_objects(stage: Stage) -> None:
    """A plan that remembers the one before looks into others alone."""
    for name in ("runs", "ends"):
        stage.submit(name)
    stage.cycle()
    stage.submit("waits")
    before, again = load_here(at=AT).snapshot, load_here(at=AT).snapshot
    assert len(before.holding) == 2
    assert all(a is b for a, b in zip(before.holding, again.holding, strict=True))
    assert all(a is b for a, b in zip(before.pending, again.pending, strict=True))
    assert before.clusters is again.clusters
    Workload.objects.filter(name="ends").update(checkpointed_at=AT)
    Workload.objects.filter(name="waits").update(priority=7)
    Workload.objects.filter(name="waits").update(reason={"code": "behind"}, reason_at=AT)
    Node.objects.filter(id=stage.nodes[0].id).update(cpu_milli=F("cpu_milli") + 1)
    Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
    after = load_here(at=AT).snapshot
    nodes = zip(before.clusters[0].nodes, after.clusters[0].nodes, strict=True)
    assert [a is b for a, b in nodes].count(False) == 1
    assert [a is b for a, b in zip(before.holding, after.holding, strict=True)].count(True) == 1
    Workload.objects.filter(name="waits").update(reason={"code": "no-fit"})
    assert load_here(at=AT).snapshot.pending[0] is after.pending[0]
    assert after.pending[0].priority == 7


def test_a_pool_held_between_two_statements_is_as_the_first_of_them_read_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of hardware depends on what it is remembered by alone."""
    read = fleet._read_inventory

    def held_before(key: tuple[fleet.Row, ...]) -> tuple[ClusterView, ...]:
        factories.close(stage.cluster, model="NVIDIA-H100-80GB-HBM3")
        return read(key)

    Cluster.objects.update(inventory_rev=F("inventory_rev") + 1)
    monkeypatch.setattr(fleet, "_read_inventory", held_before)
    for usable in (True, False):
        [seen] = fleet.clusters()
        assert {d.usable for node in seen.nodes for d in node.devices} == {usable}
        monkeypatch.setattr(fleet, "_read_inventory", read)
