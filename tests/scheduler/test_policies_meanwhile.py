"""What is permitted changes between the check of a submission and its storing."""

from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.kernel.errors import Conflict
from scheduler.models import Workload
from scheduler.services import workloads
from scheduler.services.workloads import Checked
from tenants.access import Actor, actor_for
from tenants.models import Project, Role, Tenant
from tenants.policy import Rules
from tenants.services import policies, tenants
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.meanwhile import meanwhile
from tests.scheduler.stage import Stage

CHANGED = "permitted and wanted in Detection was changed meanwhile: submit it again"


@pytest.fixture
def oz(committed: Stage) -> Actor:
    user = factories.user("oz")
    for role in (Role.OPERATOR, Role.OWNER):
        factories.member(user, role)
    return actor_for(user=user)


def check(stage: Stage) -> Checked:
    return workloads.check(actor=stage.actor, project=stage.project, specs=[spec()], at=AT)


def store(checked: Checked) -> list[Workload]:
    return workloads.store(checked=checked, at=AT)


def say(oz: Actor, of: Project | Tenant | None, *, version: int = 0, pods: int = 1) -> None:
    rules = Rules(max_pods=pods)
    policies.set_policy(actor=oz, of=of, rules=rules, version=version, at=AT)


def places(stage: Stage) -> dict[str, Project | Tenant | None]:
    return {"the fleet": None, "a tenant": stage.project.tenant, "the project": stage.project}


@pytest.mark.parametrize("where", ["the fleet", "a tenant", "the project"])
@pytest.mark.parametrize("there", [False, True])
def test_what_is_said_before_it_is_stored_is_not_passed_by(
    committed: Stage, oz: Actor, where: str, there: bool
) -> None:
    of = places(committed)[where]
    if there:
        say(oz, of, pods=9)
    checked = check(committed)
    late = meanwhile(partial(say, oz, of, version=int(there)), partial(store, checked))
    with pytest.raises(Conflict, match=CHANGED):
        late.result()
    assert not Workload.objects.exists()
    [made] = store(check(committed))
    assert Workload.objects.get() == made


@pytest.mark.parametrize("where", ["the fleet", "a tenant", "the project"])
def test_who_says_something_while_it_is_stored_finds_it_there(
    committed: Stage, oz: Actor, where: str
) -> None:
    checked = check(committed)

    def found() -> int:
        say(oz, places(committed)[where])
        return Workload.objects.count()

    assert meanwhile(partial(store, checked), found).result() == 1


def test_a_tenant_that_is_moved_below_others_rules_is_seen(committed: Stage, oz: Actor) -> None:
    strict = factories.tenant("Strict")
    say(oz, strict)
    checked = check(committed)
    move = partial(tenants.move, actor=oz, tenant=committed.project.tenant, parent=strict, at=AT)
    with pytest.raises(Conflict, match=CHANGED):
        meanwhile(move, partial(store, checked)).result()
    assert not Workload.objects.exists()


def test_two_submissions_do_not_wait_for_each_others_rules(committed: Stage) -> None:
    beside = factories.project(committed.project.tenant, "Beside")
    factories.quota(beside, committed.flavor)
    other = workloads.check(actor=committed.actor, project=beside, specs=[spec()], at=AT)
    checked = check(committed)

    def found() -> int:
        store(other)
        return Workload.objects.count()

    assert meanwhile(partial(store, checked), found).result() == 1  # the first is not committed


def test_it_costs_a_statement(committed: Stage) -> None:
    checked = check(committed)
    with CaptureQueriesContext(connection) as asked:
        store(checked)
    policies = [each for each in asked if "tenants_submitpolicy" in each["sql"]]
    assert len(policies) == 1
    assert sum("advisory_xact_lock_shared" in each["sql"] for each in asked) == 1
