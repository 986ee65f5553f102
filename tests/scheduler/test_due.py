"""Whether a cycle is due, by what runs."""

from datetime import timedelta

import pytest

from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, AttemptOutcome, PodSet
from scheduler.selectors import due
from tests import factories
from tests.conftest import Cast


@pytest.mark.django_db
@pytest.mark.parametrize("any_order", [False, True])
def test_work_may_move_up_where_its_flavors_have_an_order(cast: Cast, any_order: bool) -> None:
    a100 = factories.flavor("a100", model="NVIDIA-A100-SXM4-80GB")
    h100, north = factories.flavor("h100"), factories.cluster()
    work = factories.workload(
        cast.detection, cast.ben, [a100, h100], state=State.RUNNING, move_to_better=True
    )
    PodSet.objects.update(any_order=any_order)
    factories.place(work, factories.node(north, "n0"), h100)
    assert due.now(at=factories.AT + timedelta(hours=1)).plan is not any_order


@pytest.mark.django_db
def test_what_is_held_unseen_is_no_work_that_may_move_up(cast: Cast) -> None:
    a100 = factories.flavor("a100", model="NVIDIA-A100-SXM4-80GB")
    h100, north = factories.flavor("h100"), factories.cluster()
    work = factories.workload(
        cast.detection, cast.ben, [a100, h100], state=State.RUNNING, move_to_better=True
    )
    factories.place(work, factories.node(north, "n0"), h100)
    assert due.now(at=factories.AT).plan
    Attempt.objects.update(
        ended_at=factories.AT,
        unseen_since=factories.AT,
        outcome=AttemptOutcome.LOST,
        failure=FailureClass.CLUSTER_LOST,
    )
    assert not due.now(at=factories.AT).plan
