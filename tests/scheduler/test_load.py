"""Rows → snapshot: what the planner is told of the tree of tenants."""

from collections import Counter

import pytest

from scheduler.loop.load import load_here
from scheduler.models import Workload
from tenants.models import Quota
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
