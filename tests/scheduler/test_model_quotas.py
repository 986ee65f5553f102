"""Quotas over all of a model, from their flavor to what is used of them."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from clusters.models import Flavor, FlavorKind, FlavorPart
from clusters.port import PodPhase
from clusters.services import flavors
from controlplane.kernel.errors import Invalid
from scheduler.core.fleet.draft import Draft
from scheduler.core.lifecycle import State
from scheduler.core.units import FlavorId, ProjectId
from scheduler.loop.checking import invariants, rules
from scheduler.selectors import guarantees, offers
from scheduler.selectors.load import load_here
from tenants.access import Actor, actor_for
from tenants.models import Quota, Role, User
from tenants.selectors import prices
from tenants.services import quotas, rates, requests, reservations
from tenants.services.grants import Allotment
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage

pytestmark = pytest.mark.django_db
MODEL = "NVIDIA-H100-80GB-HBM3"


def make(name: str, kind: FlavorKind, profile: str = "") -> Flavor:
    meaning = flavors.Meaning(kind=kind, model=MODEL, profile=profile)
    return flavors.create(name=name, meaning=meaning, actor="cli", actor_name="cli", at=AT)


def sevenths() -> Flavor:
    return make("h100.sevenths", FlavorKind.MODEL)


@pytest.fixture
def oz(db: None) -> Actor:
    user = factories.user("oz")
    factories.member(user, Role.OPERATOR)
    return actor_for(user=user)


def grant(oz: Actor, stage: Stage, flavor: Flavor, milli: int, borrow: int | None = 0) -> Quota:
    return quotas.set_quota(
        actor=oz,
        project=stage.project,
        flavor=flavor,
        amounts=quotas.Amounts(nominal_milli=milli, borrowing_limit_milli=borrow),
        at=AT,
    )


def used() -> dict[str, int]:
    return dict(Quota.objects.values_list("flavor__name", "used_milli"))


def broken() -> list[str]:
    return rules.told(invariants.violations_here())


def test_it_counts_each_flavor_of_its_model_made_before_and_after() -> None:
    make("h100", FlavorKind.WHOLE)
    make("h100.1g", FlavorKind.MIG, "1g.10gb")
    whole = make("h100.sevenths", FlavorKind.MODEL)
    make("h100.3g", FlavorKind.MIG, "3g.40gb")
    factories.cpu_flavor()
    factories.flavor("t4", model="Tesla-T4")
    counted = dict(FlavorPart.objects.filter(whole=whole).values_list("part__name", "milli"))
    assert counted == {"h100": 7000, "h100.1g": 1000, "h100.3g": 3500}


@pytest.mark.parametrize(
    ("kind", "name"), [(FlavorKind.MODEL, "h100"), (FlavorKind.WHOLE, "a.sevenths")]
)
def test_its_name_tells_its_unit_and_no_others_does(kind: FlavorKind, name: str) -> None:
    with pytest.raises(Invalid, match=r"/name: The names of kind model.* end in \.sevenths"):
        make(name, kind)
    assert not Flavor.objects.exists()


def test_what_starts_and_ends_is_charged_to_flavor_and_model(stage: Stage, oz: Actor) -> None:
    grant(oz, stage, sevenths(), 112_000)
    run = stage.running("w", gpus=2)
    assert used() == {"h100": 2000, "h100.sevenths": 14_000}
    assert broken() == []
    stage.observe(
        stage.report(run.placements.get(), PodPhase.SUCCEEDED, started_at=AT, finished_at=LATER)
    )
    assert used() == {"h100": 0, "h100.sevenths": 0}
    assert broken() == []


def test_nothing_starts_beyond_it_and_the_reason_says_so(stage: Stage, oz: Actor) -> None:
    grant(oz, stage, sevenths(), 7000)
    stage.running("one")
    two = stage.submit("two")
    stage.cycle()
    two.refresh_from_db()
    assert two.state == State.PENDING
    assert two.reason is not None
    assert two.reason["code"] == "quota-used"
    assert two.reason["numbers"]["flavor"] == "h100.sevenths"


def test_the_database_holds_the_law_of_it(stage: Stage, oz: Actor) -> None:
    quota = grant(oz, stage, sevenths(), 7000)
    with (
        pytest.raises(IntegrityError, match="7001 used would pass 7000 nominal"),
        transaction.atomic(),
    ):
        Quota.objects.filter(id=quota.id).update(used_milli=F("used_milli") + 7001)


def test_a_quota_made_late_counts_what_runs_even_beyond_it(stage: Stage, oz: Actor) -> None:
    stage.running("w", gpus=2)
    quota = grant(oz, stage, sevenths(), 7000)
    assert (quota.nominal_milli, quota.used_milli, quota.version) == (7000, 14_000, 1)
    assert Quota.objects.get(id=quota.id).nominal_milli == 7000
    assert broken() == []


def test_a_granted_request_counts_what_runs_too(stage: Stage, oz: Actor) -> None:
    stage.running("w", gpus=2)
    asked = requests.open(
        actor=stage.actor, project=stage.project, flavor=sevenths(),
        allotment=Allotment(nominal_milli=28_000), reason="All of it.", at=AT,
    )  # fmt: skip
    factories.member(factories.user("pia"), Role.APPROVER)
    pia = actor_for(user=User.objects.get(username="pia"))
    requests.grant(actor=pia, request=asked, at=AT)
    assert used() == {"h100": 2000, "h100.sevenths": 14_000}


def test_a_project_without_one_is_not_counted(stage: Stage) -> None:
    sevenths()
    stage.running("w", gpus=2)
    assert used() == {"h100": 2000}
    assert broken() == []


def test_it_is_told_when_it_does_not_agree_with_what_is_held(stage: Stage, oz: Actor) -> None:
    grant(oz, stage, sevenths(), 112_000)
    stage.running("w", gpus=2)
    Quota.objects.filter(flavor__kind=FlavorKind.MODEL).update(used_milli=13_000)
    [told] = broken()
    assert "13000 thousandths are counted as used, 14000 are held." in told


def test_it_is_told_when_more_is_held_than_it_grants_and_nobody_cut_it(stage: Stage) -> None:
    quota = factories.quota(stage.project, sevenths(), 112_000, borrowing_limit_milli=0)
    stage.running("w", gpus=2)
    Quota.objects.filter(id=quota.id).update(nominal_milli=13_000)
    told = broken()
    assert any("14000 held of 13000 at most" in sentence for sentence in told)
    assert any("h100.sevenths: 14000 are held of the 13000" in sentence for sentence in told)


def test_the_planner_sees_what_the_rows_say(stage: Stage, oz: Actor) -> None:
    quota = grant(oz, stage, sevenths(), 112_000)
    stage.running("w", gpus=2)
    snapshot = load_here(at=LATER).snapshot
    draft = Draft(snapshot=snapshot, holding=snapshot.holding)
    project, flavor = ProjectId(str(stage.project.id)), FlavorId(str(quota.flavor_id))
    assert draft.book.used(project=project, flavor=flavor) == 14_000
    assert draft.book.available(project=project, flavor=flavor) == 98_000


def test_more_than_the_devices_have_is_told(stage: Stage, oz: Actor) -> None:
    """Sixteen GPUs are 112 sevenths."""
    flavor = sevenths()
    grant(oz, stage, flavor, 112_000)
    assert guarantees.warnings(flavor=flavor, owner=stage.project) == ()
    grant(oz, stage, flavor, 113_000)
    assert guarantees.warnings(flavor=flavor, owner=stage.project) == (
        "113 h100.sevenths are guaranteed in the whole fleet, which has 112: 1 too many.",
    )


def test_work_prices_and_reservations_are_not_of_it(stage: Stage, oz: Actor) -> None:
    flavor = sevenths()
    grant(oz, stage, flavor, 112_000)
    with pytest.raises(Invalid, match="name what the pods are to get of it"):
        stage.submit("w", flavor=flavor.name)
    with pytest.raises(Invalid, match="set prices of what work gets"):
        rates.set_rate(
            actor=oz, flavor=flavor, cluster=None, price_per_hour=Decimal(1), currency="EUR",
            start=None, at=AT,
        )  # fmt: skip
    with pytest.raises(Invalid, match="reserve what work asks for"):
        reservations.make(
            actor=oz, of=stage.project, flavor=flavor, amount_milli=7000, starts_at=AT,
            ends_at=LATER, note="", there_milli=0, at=AT,
        )  # fmt: skip
    listed = offers.offers(prices=prices.at_moment(at=AT))
    assert flavor.name not in {offer.name for offer in listed}
