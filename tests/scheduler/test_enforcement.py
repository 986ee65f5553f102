"""A quota that was lowered below its use, from the moment it is enforced to when it is kept."""

from datetime import datetime, timedelta

import pytest

from clusters.port import PodPhase
from scheduler.loop import lease, run
from scheduler.loop.applying import enforcement
from scheduler.models import Workload
from scheduler.selectors.load import load_here
from tenants.access import actor_for
from tenants.models import Quota, Role, TenantQuota
from tenants.services import quotas
from tenants.services.quotas import Amounts
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, SHARD, Stage


def lower(stage: Stage, milli: int, enforce_at: datetime | None) -> None:
    """The project's quota, by an operator."""
    oz = factories.user("oz")
    factories.member(oz, Role.OPERATOR)
    to = Amounts(nominal_milli=milli, borrowing_limit_milli=0, enforce_at=enforce_at)
    quotas.set_quota(
        actor=actor_for(user=oz), project=stage.project, flavor=stage.flavor, amounts=to, at=AT
    )


def states() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "state"))


def settle(stage: Stage) -> int:
    held = lease.acquire(shard=SHARD)
    assert held is not None
    try:
        return enforcement.settle(lease=held, snapshot=load_here(at=LATER).snapshot, at=LATER)
    finally:
        lease.release(held)


def test_a_lowered_quota_alone_stops_nothing(stage: Stage) -> None:
    stage.running("kept", gpus=8)
    lower(stage, 4000, None)
    stage.submit("waits")
    stage.cycle(at=LATER)
    assert states() == {"kept": "RUNNING", "waits": "PENDING"}


def test_what_is_beyond_it_goes_from_its_moment_on_and_nothing_that_may_not(
    stage: Stage,
) -> None:
    stage.running("old", gpus=4)
    young = stage.running("young", gpus=4, at=AT + timedelta(seconds=30))
    stage.running("firm", gpus=4, preemptible=False)
    lower(stage, 8000, LATER)
    assert load_here(at=AT).snapshot.queues[0].quotas[0].enforce_at == int(LATER.timestamp())
    stage.cycle(at=LATER - timedelta(seconds=1))
    assert states() == {"old": "RUNNING", "young": "RUNNING", "firm": "RUNNING"}
    stage.cycle(at=LATER)
    assert states() == {"old": "RUNNING", "young": "PREEMPTING", "firm": "RUNNING"}
    messages = set(young.events.values_list("message", flat=True))
    assert "rule: quota" in messages
    assert (
        "preempted because more is held than its quota allows since that was lowered" in messages
    )


def test_it_is_over_once_no_more_is_held(stage: Stage) -> None:
    gone = stage.running("gone", gpus=8)
    lower(stage, 4000, AT)
    stage.cycle(at=LATER)
    assert settle(stage) == 0
    stage.dispatch()
    stage.observe(stage.report(gone.placements.get(), PodPhase.FAILED))
    assert settle(stage) == 1
    assert Quota.objects.get().enforce_at is None
    assert settle(stage) == 0


def test_a_tenants_quota_is_enforced_as_a_projects_is(stage: Stage) -> None:
    stage.running("one", gpus=4)
    Quota.objects.update(nominal_milli=0, borrowing_limit_milli=None)
    TenantQuota.objects.create(
        tenant=stage.project.tenant, flavor=stage.flavor, nominal_milli=2000,
        borrowing_limit_milli=0, enforce_at=AT,
    )  # fmt: skip
    stage.cycle(at=LATER)
    assert states() == {"one": "PREEMPTING"}


def test_pods_beyond_the_least_go_by_themselves(stage: Stage) -> None:
    gang = stage.running("gang", count=4, least=2)
    lower(stage, 3000, AT)
    decided = stage.decide(at=LATER)[1]
    assert decided.preempts == ()
    [shrink] = decided.shrinks
    assert (shrink.victim, len(shrink.placements)) == (str(gang.id), 1)


@pytest.mark.django_db(transaction=True)
def test_a_cycle_enforces_it_though_nothing_waits_and_then_is_idle_again(
    committed: Stage,
) -> None:
    gone = committed.running("gone", count=2, gpus=8)
    lower(committed, 4000, LATER)
    assert run.run_cycle(at=AT) is None
    record = run.run_cycle(at=LATER)
    assert record is not None
    assert record.plan["preempts"] == [[str(gone.id), "", "quota"]]
    assert states() == {"gone": "PREEMPTING"}
    committed.cancel(gone)
    committed.dispatch()
    for placement in gone.placements.all():
        committed.observe(committed.report(placement, PodPhase.FAILED))
    assert states() == {"gone": "CANCELLED"}
    assert run.run_cycle(at=LATER) is not None
    assert Quota.objects.get().enforce_at is None
    assert run.run_cycle(at=LATER) is None


def test_pods_that_go_for_a_quota_say_so_on_the_timeline(committed: Stage) -> None:
    gang = committed.running("gang", count=4, least=2)
    lower(committed, 3000, AT)
    run.run_cycle(at=LATER)
    assert gang.events.filter(kind="shrunk").get().message == (
        "1 fewer because more is held than its quota allows since that was lowered; 3 of 4 pods"
    )
