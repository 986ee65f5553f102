"""What is promised beyond what there is is told with its numbers, and refused to nobody."""

import pytest

from clusters.models import Flavor
from scheduler.selectors import guarantees
from tenants.models import TenantQuota
from tests import factories
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def h100() -> Flavor:
    """Eight of them."""
    made = factories.flavor()
    factories.node(factories.cluster(), gpus=8)
    return made


def test_what_there_is_may_be_promised(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 8000)
    assert guarantees.warnings(flavor=h100, owner=cast.detection) == ()


def test_more_than_the_fleet_has_is_told(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 6000)
    TenantQuota.objects.create(tenant=cast.speech, flavor=h100, nominal_milli=2500)
    assert guarantees.warnings(flavor=h100, owner=cast.speech) == (
        "8.5 h100-80gb are guaranteed in the whole fleet, which has 8: 0.5 too many.",
    )


def test_a_limit_beyond_what_those_above_permit_is_told(cast: Cast, h100: Flavor) -> None:
    factories.quota(cast.detection, h100, 2000, borrowing_limit_milli=4000)
    factories.quota(cast.dialogue, h100, 5000)
    TenantQuota.objects.create(
        tenant=cast.vision, flavor=h100, nominal_milli=1000, borrowing_limit_milli=1000
    )
    assert guarantees.warnings(flavor=h100, owner=cast.detection) == (
        "Detection may hold 6 h100-80gb by its own limits, and never more than 4 by what others"
        " lend and the tenants above it permit.",
    )
    of_those_below = guarantees.warnings(flavor=h100, owner=cast.vision)
    assert of_those_below == guarantees.warnings(flavor=h100, owner=cast.detection)
    assert guarantees.warnings(flavor=h100, owner=cast.speech) == ()


def test_a_tenant_whose_quota_is_cut_below_what_those_in_it_may_hold_is_told_of_each(
    cast: Cast, h100: Flavor
) -> None:
    below = factories.tenant("Robots", parent=cast.vision)
    for name in ("Arms", "Legs", "Hands", "Heads"):
        project = factories.project(below, name)
        factories.quota(project, h100, 1000, borrowing_limit_milli=5000)
    set_to = TenantQuota.objects.create(
        tenant=cast.vision, flavor=h100, nominal_milli=4000, borrowing_limit_milli=0
    )
    assert guarantees.warnings(flavor=h100, owner=cast.vision) == ()
    TenantQuota.objects.filter(id=set_to.id).update(nominal_milli=1000)
    *named, others = guarantees.warnings(flavor=h100, owner=cast.vision)
    assert [sentence.split()[0] for sentence in named] == ["Arms", "Hands", "Heads"]
    assert "may hold 6 h100-80gb by its own limits, and never more than 5" in named[0]
    assert others == "So it is with 1 more below Vision Lab."
