"""Weights in fair share: who sets them, and what a plan makes of them."""

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from scheduler.selectors.load import load_here
from tenants.access import actor_for
from tenants.models import Project, Role, Tenant, User
from tenants.services import weights
from tests import factories
from tests.conftest import Cast


def of_project(cast: Cast, weight: int, by: User) -> Project:
    return weights.set_for_project(
        actor=actor_for(user=by), project=cast.detection, weight=weight, at=factories.AT
    )


def of_tenant(cast: Cast, weight: int, by: User) -> Tenant:
    return weights.set_for_tenant(
        actor=actor_for(user=by), tenant=cast.vision, weight=weight, at=factories.AT
    )


def test_the_next_plan_goes_by_them_and_they_are_written_down(cast: Cast) -> None:
    of_project(cast, 3, cast.oz)
    of_tenant(cast, 5, cast.oz)
    snapshot = load_here(at=factories.AT).snapshot
    told = {str(queue.project): queue.weight for queue in snapshot.queues}
    assert (told[str(cast.detection.id)], told[str(cast.segmentation.id)]) == (3, 1)
    above = {str(cohort.id): cohort.weight for cohort in snapshot.cohorts}
    assert (above[str(cast.vision.id)], above[str(cast.speech.id)]) == (5, 1)
    events = AuditEvent.objects.order_by("id")
    assert [(e.action, e.before, e.after) for e in events] == [
        ("project.weight", {"weight": 1}, {"weight": 3}),
        ("tenant.weight", {"weight": 1}, {"weight": 5}),
    ]


@pytest.mark.parametrize("weight", [0, -1, weights.MAX_WEIGHT + 1])
def test_a_weight_out_of_range_changes_nothing(cast: Cast, weight: int) -> None:
    for refused in (of_project, of_tenant):
        with pytest.raises(Invalid, match="A weight is from 1 to 1000"):
            refused(cast, weight, cast.oz)
    assert not AuditEvent.objects.exists()


def test_who_may_set_them_is_who_may_set_quotas(cast: Cast) -> None:
    """An operator of a tenant sets those of its projects, but not its own among its siblings."""
    vera = factories.user("vera")
    factories.member(vera, Role.OPERATOR, at=cast.vision)
    of_project(cast, 2, vera)
    for by in (vera, cast.ada):
        with pytest.raises(NotAllowed):
            of_tenant(cast, 2, by)
    with pytest.raises(NotAllowed):
        of_project(cast, 7, cast.ada)
    with pytest.raises(NotFound):
        of_project(cast, 7, cast.cleo)
    assert Project.objects.get(id=cast.detection.id).weight == 2
    assert Tenant.objects.get(id=cast.vision.id).weight == 1
