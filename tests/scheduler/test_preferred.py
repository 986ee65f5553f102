"""Which flavors work gets as its project prefers them: those that it did not name."""

from dataclasses import replace
from typing import Any

import pytest

from clusters.models import Flavor, FlavorKind
from controlplane.kernel.errors import Invalid
from scheduler.core.lifecycle import State
from scheduler.models import PodSet, Workload
from scheduler.services import arrays, wishes, workloads
from scheduler.services.specs import ArraySpec, WishSpec, WorkloadSpec
from tenants.services import preferred
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage

SIZES = {"a100": ("NVIDIA-A100-SXM4-80GB", 81_920), "l40s": ("NVIDIA-L40S", 46_068)}


@pytest.fixture
def shelf(stage: Stage) -> Stage:
    """Beside the stage's H100 an A100 and an L40S on a node each, and quota of them."""
    Flavor.objects.filter(id=stage.flavor.id).update(memory_mib=81_559)
    for name, (model, memory_mib) in SIZES.items():
        flavor = factories.flavor(name, model=model, memory_mib=memory_mib)
        factories.node(stage.cluster, f"n-{name}", model=model, gpus=1)
        factories.quota(stage.project, flavor, 1000)
    return stage


def prefer(stage: Stage, *names: str) -> None:
    preferred.set_for_project(actor=stage.actor, project=stage.project, names=names, at=AT)


def asking(*named: str, wish: WishSpec | None = None, **of_pods: Any) -> WorkloadSpec:
    """One pod of a GPU, unless `of_pods` says otherwise. Any: fields of its pod set."""
    one = spec(name="train", flavor="h100")
    changed = replace(one.pod_sets[0], flavors=named, wish=wish, **of_pods)
    return replace(one, pod_sets=(changed,))


def submit(stage: Stage, of: WorkloadSpec) -> Workload:
    [made] = workloads.submit(actor=stage.actor, project=stage.project, specs=[of], at=AT)
    return made


def accepted(of: Workload) -> list[str]:
    rows = PodSet.objects.get(workload=of).accepted.order_by("position")
    return list(rows.values_list("flavor__name", flat=True))


def why_not(stage: Stage, of: WorkloadSpec) -> tuple[str, str, str]:
    with pytest.raises(Invalid) as refused:
        submit(stage, of)
    [problem] = refused.value.problems
    assert not Workload.objects.exists()
    return problem.pointer, problem.code, problem.message


def test_work_that_names_nothing_gets_what_its_project_prefers_and_no_other(shelf: Stage) -> None:
    prefer(shelf, "a100", "h100")
    made = submit(shelf, asking())
    assert accepted(made) == ["a100", "h100"]
    assert PodSet.objects.get(workload=made).as_preferred
    assert shelf.cycle().admitted == {str(made.id)}
    assert made.placements.get().flavor.name == "a100"
    behind = submit(shelf, asking())
    shelf.cycle()
    assert behind.placements.get().flavor.name == "h100"


def test_of_what_has_the_wish_the_preferred_come_first_and_the_others_as_ever(
    shelf: Stage,
) -> None:
    wish = WishSpec()
    assert accepted(submit(shelf, asking(wish=wish))) == ["l40s", "h100", "a100"]
    prefer(shelf, "h100")
    assert accepted(submit(shelf, asking(wish=wish))) == ["h100", "l40s", "a100"]
    assert accepted(submit(shelf, asking("a100", wish=wish))) == ["a100", "h100", "l40s"]


def test_what_is_preferred_and_has_not_what_is_wished_is_not_accepted(shelf: Stage) -> None:
    prefer(shelf, "l40s", "h100")
    assert accepted(submit(shelf, asking(wish=WishSpec(76_293)))) == ["h100", "a100"]


def test_named_flavors_keep_the_order_of_the_request(shelf: Stage) -> None:
    prefer(shelf, "h100", "a100")
    assert accepted(submit(shelf, asking("l40s", "a100"))) == ["l40s", "a100"]


def test_naming_all_reads_nothing_of_what_is_preferred(
    shelf: Stage, django_assert_num_queries: Any
) -> None:
    """Any: pytest-django's context manager."""
    prefer(shelf, "a100")
    with django_assert_num_queries(0):
        wishes.widened(project=shelf.project, specs=[asking("h100")], at=AT)


def test_a_share_a_whole_gpu_and_cores_are_told_apart_by_what_is_asked(shelf: Stage) -> None:
    factories.flavor("t4.shared", FlavorKind.SHARE, model="Tesla-T4", memory_mib=15_360)
    factories.node(
        shelf.cluster, "n-t4", gpus=1, model="Tesla-T4", share_isolation="none", share_replicas=10
    )
    for flavor in (Flavor.objects.get(name="t4.shared"), factories.cpu_flavor("cpu")):
        factories.quota(shelf.project, flavor, 100_000)
    prefer(shelf, "t4.shared", "cpu", "h100")
    assert accepted(submit(shelf, asking())) == ["h100"]
    assert accepted(submit(shelf, asking(gpu_milli=500))) == ["t4.shared"]
    assert accepted(submit(shelf, asking(gpu_memory_mib=4_000))) == ["t4.shared"]
    assert accepted(submit(shelf, asking(gpu_count=0))) == ["cpu"]


def test_without_anything_preferred_a_flavor_has_to_be_named(shelf: Stage) -> None:
    assert why_not(shelf, asking()) == (
        "/0/pod_sets/0/flavors",
        "required",
        "At least one flavor is wanted, or a wish; or its project has to prefer some.",
    )


def test_who_asks_for_what_is_not_preferred_reads_what_is(shelf: Stage) -> None:
    prefer(shelf, "a100", "h100")
    assert why_not(shelf, asking(gpu_milli=500)) == (
        "/0/pod_sets/0/flavors",
        "required",
        "At least one flavor is wanted, or a wish: none of those that its project prefers is of"
        " shares of a GPU: a100, h100.",
    )


def test_a_preferred_flavor_without_quota_is_passed_over_and_alone_it_is_refused(
    shelf: Stage,
) -> None:
    shelf.project.quotas.filter(flavor__name="a100").delete()
    prefer(shelf, "a100")
    pointer, code, _ = why_not(shelf, asking())
    assert (pointer, code) == ("/0/pod_sets/0/flavors", "never-admissible")
    prefer(shelf, "a100", "h100")
    made = submit(shelf, asking())
    shelf.cycle()
    assert made.placements.get().flavor.name == "h100"


def test_what_waits_goes_by_what_is_preferred_by_now(shelf: Stage) -> None:
    prefer(shelf, "a100")
    unnamed, wished = submit(shelf, asking()), submit(shelf, asking(wish=WishSpec()))
    named = submit(shelf, asking("a100"))
    assert wishes.refresh(at=LATER) == 0
    prefer(shelf, "h100", "l40s")
    assert wishes.refresh(at=LATER) == 2
    assert accepted(unnamed) == ["h100", "l40s"]
    assert accepted(wished) == ["h100", "l40s", "a100"]
    assert accepted(named) == ["a100"]
    assert wishes.refresh(at=LATER) == 0
    shelf.cycle()
    assert unnamed.placements.get().flavor.name == "h100"


@pytest.mark.parametrize("now", [(), ("cpu",)])
def test_what_waits_keeps_what_it_accepts_where_nothing_that_is_preferred_goes_with_it(
    shelf: Stage, now: tuple[str, ...]
) -> None:
    factories.cpu_flavor("cpu")
    prefer(shelf, "a100")
    made = submit(shelf, asking())
    prefer(shelf, *now)
    assert wishes.refresh(at=LATER) == 0
    assert accepted(made) == ["a100"]


def test_what_runs_keeps_what_it_accepts_until_it_waits_again(shelf: Stage) -> None:
    prefer(shelf, "a100")
    made = submit(shelf, asking())
    shelf.cycle()
    prefer(shelf, "h100")
    assert wishes.refresh(at=LATER) == 0
    assert accepted(made) == ["a100"]


def test_what_starts_while_it_is_looked_at_keeps_what_it_accepts(
    shelf: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found waiting, and is placed before its row is locked."""
    prefer(shelf, "a100")
    made = submit(shelf, asking())
    prefer(shelf, "h100")
    shelf_of = wishes._shelf

    def slow(*asked: Any) -> wishes.Shelf:  # Any: as it is called
        shelf.cycle()
        return shelf_of(*asked)

    monkeypatch.setattr(wishes, "_shelf", slow)
    assert wishes.refresh(at=LATER) == 0
    assert accepted(made) == ["a100"]
    made.refresh_from_db()
    assert made.state == State.ADMITTED


def test_all_elements_of_an_array_go_by_it(shelf: Stage) -> None:
    prefer(shelf, "a100")
    arrays.submit(
        actor=shelf.actor, project=shelf.project, spec=asking(), array=ArraySpec(3), at=AT
    )
    prefer(shelf, "h100", "a100")
    assert wishes.refresh(at=LATER) == 3
    assert {tuple(accepted(one)) for one in Workload.objects.all()} == {("h100", "a100")}


def test_a_preference_of_one_project_is_no_other_s(shelf: Stage) -> None:
    other = factories.project(shelf.project.tenant, "other")
    factories.quota(other, shelf.flavor, 1000)
    prefer(shelf, "h100")
    with pytest.raises(Invalid):
        workloads.submit(actor=shelf.actor, project=other, specs=[asking()], at=AT)
