"""Devices by what they have: which flavors that is, now and when others come."""

from dataclasses import replace
from typing import Any

import pytest

from clusters.models import Flavor, FlavorKind
from controlplane.kernel.errors import Invalid
from scheduler.models import PodSet, Workload
from scheduler.selectors import asked
from scheduler.services import wishes, workloads
from scheduler.services.specs import WishSpec, WorkloadSpec
from tenants.models import PreferredFlavor
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import Stage

SIZES = {
    "a100-40": ("NVIDIA-A100-PCIE-40GB", 40_536),
    "a100-80": ("NVIDIA-A100-SXM4-80GB", 81_920),
    "h100": ("NVIDIA-H100-80GB-HBM3", 81_559),
    "h200": ("NVIDIA-H200", 143_771),
    "mi300x": ("AMD-Instinct-MI300X", 196_592),
    "t4": ("Tesla-T4", 15_360),
}
EIGHTY_GB = 76_293


def make(stage: Stage, name: str) -> Flavor:
    """With a node of it in the stage's cluster, and quota for its project."""
    model, memory_mib = SIZES[name]
    made = factories.flavor(name, model=model, memory_mib=memory_mib)
    factories.node(stage.cluster, f"n-{name}", model=model, gpus=1)
    factories.quota(stage.project, made, 1000)
    return made


@pytest.fixture
def shelf(stage: Stage) -> Stage:
    """Every size but the H200's; the stage's own H100 at the most a price."""
    Flavor.objects.filter(id=stage.flavor.id).update(memory_mib=SIZES["h100"][1])
    for name in SIZES.keys() - {"h100", "h200"}:
        make(stage, name)
    factories.mig_flavor()
    factories.rate(Flavor.objects.get(name="a100-80"), "2.00")
    return stage


def wishing(*named: str, least: int = EIGHTY_GB, vendors: tuple[str, ...] = ()) -> WorkloadSpec:
    one = spec(name="train", flavor="h100")
    [pod_set] = one.pod_sets
    return replace(one, pod_sets=(replace(pod_set, flavors=named, wish=WishSpec(least, vendors)),))


def submit(stage: Stage, of: WorkloadSpec) -> Workload:
    [made] = workloads.submit(actor=stage.actor, project=stage.project, specs=[of], at=AT)
    return made


def accepted(of: Workload) -> list[str]:
    rows = PodSet.objects.get(workload=of).accepted.order_by("position")
    return list(rows.values_list("flavor__name", flat=True))


def test_the_smallest_that_suffices_comes_first_and_of_one_size_the_cheapest(
    shelf: Stage,
) -> None:
    assert accepted(submit(shelf, wishing())) == ["a100-80", "h100", "mi300x"]
    factories.rate(Flavor.objects.get(name="mi300x"), "0.10")
    assert accepted(submit(shelf, wishing())) == ["a100-80", "h100", "mi300x"]


def test_spot_is_for_work_whose_project_prefers_it(shelf: Stage) -> None:
    spot = factories.flavor(
        "spot", model=SIZES["h100"][0], memory_mib=SIZES["h100"][1], capacity="spot"
    )
    factories.quota(shelf.project, spot, 1000)
    assert accepted(submit(shelf, wishing())) == ["a100-80", "h100", "mi300x"]
    assert accepted(submit(shelf, wishing("spot"))) == ["spot", "a100-80", "h100", "mi300x"]
    PreferredFlavor.objects.create(project=shelf.project, flavor=spot, position=0)
    assert accepted(submit(shelf, wishing())) == ["spot", "a100-80", "h100", "mi300x"]


def test_a_flavor_without_a_price_comes_behind_those_of_its_size_that_have_one(
    shelf: Stage,
) -> None:
    Flavor.objects.get(name="a100-80").rates.all().delete()
    assert accepted(submit(shelf, wishing()))[:2] == ["h100", "a100-80"]


def test_named_flavors_come_before_and_none_comes_twice(shelf: Stage) -> None:
    made = submit(shelf, wishing("h100", "t4"))
    assert accepted(made) == ["h100", "t4", "a100-80", "mi300x"]
    rows = PodSet.objects.get(workload=made).accepted.filter(wished=True)
    assert rows.count() == 2


@pytest.mark.parametrize(
    ("vendors", "found"),
    [
        (("amd",), ["mi300x"]),
        (("nvidia",), ["t4", "a100-40", "a100-80", "h100"]),
        (("amd", "nvidia"), ["t4", "a100-40", "a100-80", "h100", "mi300x"]),
    ],
)
def test_makers_are_told_by_the_models(
    shelf: Stage, vendors: tuple[str, ...], found: list[str]
) -> None:
    assert accepted(submit(shelf, wishing(least=0, vendors=vendors))) == found


@pytest.mark.parametrize(
    ("least", "vendors", "said"),
    [
        (
            200_000,
            (),
            "No flavor has 200000 MiB a GPU or more; the largest here is mi300x with 196592 MiB.",
        ),
        (
            90_000,
            ("nvidia",),
            "No flavor of nvidia has 90000 MiB a GPU or more; the largest here is a100-80 with"
            " 81920 MiB.",
        ),
        (0, ("intel",), "No flavor is of whole GPUs of intel; there are some of amd, nvidia."),
    ],
)
def test_what_no_flavor_has_is_refused_with_the_largest(
    shelf: Stage, least: int, vendors: tuple[str, ...], said: str
) -> None:
    with pytest.raises(Invalid) as refused:
        submit(shelf, wishing(least=least, vendors=vendors))
    [problem] = refused.value.problems
    assert (problem.pointer, problem.code) == ("/0/pod_sets/0/wish", "no-such-device")
    assert problem.message == said
    assert not Workload.objects.exists()


def test_a_named_flavor_is_enough_until_one_with_the_wish_comes(shelf: Stage) -> None:
    assert accepted(submit(shelf, wishing("h100", least=200_000))) == ["h100"]


def test_what_waits_starts_on_a_flavor_that_comes_later(shelf: Stage) -> None:
    full = shelf.submit("full", gpus=8, count=2)
    shelf.cycle()
    full.refresh_from_db()
    assert full.state == "ADMITTED"
    waits = submit(shelf, wishing("h100", least=140_000, vendors=("nvidia",)))
    assert not shelf.cycle().admitted
    assert wishes.refresh(at=AT) == 0
    h200 = make(shelf, "h200")
    shelf.hardware_changed()
    assert not shelf.cycle().admitted
    assert wishes.refresh(at=AT) == 1
    assert accepted(waits) == ["h100", "h200"]
    assert [str(waits.id)] == list(shelf.cycle().admitted)
    assert waits.placements.get().flavor == h200
    assert wishes.refresh(at=AT) == 0


def test_a_flavor_that_comes_later_stands_where_it_would_have_stood(shelf: Stage) -> None:
    made = submit(shelf, wishing(least=0, vendors=("amd", "nvidia")))
    make(shelf, "h200")
    wishes.refresh(at=AT)
    assert accepted(made) == ["t4", "a100-40", "a100-80", "h100", "h200", "mi300x"]
    made.refresh_from_db()
    views = asked.of({str(made.id): made.asks_version})[str(made.id)].pod_sets
    ids = {str(flavor.id): flavor.name for flavor in Flavor.objects.all()}
    assert [ids[flavor] for flavor in views[0].flavors] == accepted(made)


def test_who_has_ended_or_wishes_nothing_stays_as_it_is(shelf: Stage) -> None:
    plain, ended = shelf.submit("plain"), submit(shelf, wishing())
    before = accepted(ended)
    shelf.cancel(ended)
    make(shelf, "h200")
    assert wishes.refresh(at=AT) == 0
    assert (accepted(plain), accepted(ended)) == (["h100"], before)


def test_nobody_wishing_costs_one_query(shelf: Stage, django_assert_num_queries: Any) -> None:
    """Any: pytest-django's context manager."""
    shelf.submit("plain")
    with django_assert_num_queries(1):
        assert wishes.refresh(at=AT) == 0


def test_a_slice_or_a_core_is_no_device_of_any_size(shelf: Stage) -> None:
    factories.cpu_flavor()
    names = set(accepted(submit(shelf, wishing(least=0))))
    whole = Flavor.objects.filter(kind=FlavorKind.WHOLE).values_list("name", flat=True)
    assert names == set(whole)
