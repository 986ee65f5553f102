"""What a policy would have refused lately: counted on what was submitted."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.kernel.errors import Invalid, NotAllowed
from scheduler.models import Workload
from scheduler.services import arrays, policy_trials
from scheduler.services.policy_trials import BACK, Trial
from scheduler.services.specs import ArraySpec
from tenants.access import actor_for
from tenants.models import Role, SubmitPolicy
from tenants.policy import Rules
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.caught_pods import gang
from tests.scheduler.stage import LATER, Stage


def tried(stage: Stage, *, of: Any, at: Any = LATER, **rules: Any) -> Trial:
    """Any: a place, a moment, and fields of Rules."""
    return policy_trials.tried(actor=stage.actor, of=of, rules=Rules(**rules), at=at)


def told(trial: Trial) -> dict[str, tuple[int, int]]:
    return {each.rule: (each.count, each.projects) for each in trial.rules}


def test_submissions_are_counted_by_rule_once_each_and_nothing_is_said(stage: Stage) -> None:
    stage.submit("one", count=1)
    stage.submit("two", count=2, priority_class="high")
    stage.submit("three", count=3)
    found = tried(
        stage, of=stage.project, max_pods=1, priority_classes=("normal",), max_gpus_milli=3000
    )
    assert told(found) == {"max_pods": (2, 1), "priority_classes": (1, 1)}
    assert (found.looked_at, found.refused, found.all_looked_at) == (3, 2, True)
    assert found.rules[0].example.startswith("3 pods are more than the 1")
    assert not SubmitPolicy.objects.exists()


def test_what_gets_the_policys_defaults_is_not_refused_for_lack_of_them(stage: Stage) -> None:
    stage.submit("one", run_time_limit_s=60)
    found = tried(
        stage,
        of=stage.project,
        required_labels={"team": ("a",)},
        default_labels={"team": "a"},
        forbidden_fields=("priority_class", "clusters"),
    )
    assert (found.looked_at, found.refused) == (1, 0)
    forbidden = tried(stage, of=stage.project, forbidden_fields=("run_time_limit_s",))
    assert told(forbidden) == {"forbidden_fields": (1, 1)}


def test_what_others_made_is_not_refused_for_what_berth_says_of_it(stage: Stage) -> None:
    gang(stage, "a")
    found = tried(stage, of=stage.project, forbidden_fields=("clusters", "retries"))
    assert (found.looked_at, found.refused) == (1, 0)


def test_an_array_is_one_submission(stage: Stage) -> None:
    arrays.submit(
        actor=stage.actor,
        project=stage.project,
        spec=spec(stage.flavor.name, count=2),
        array=ArraySpec(5),
        at=AT,
    )
    found = tried(stage, of=stage.project, max_pods=1)
    assert (found.looked_at, told(found)) == (1, {"max_pods": (1, 1)})


def test_only_what_is_below_the_place_and_of_the_last_days_is_looked_at(stage: Stage) -> None:
    stage.submit("old")
    Workload.objects.update(submitted_at=LATER - BACK - timedelta(seconds=1))
    mine = stage.submit("mine")
    elsewhere = factories.project(factories.tenant("Elsewhere"), "Other")
    department = factories.tenant("Below", parent=stage.project.tenant)
    below = factories.project(department, "Deep")
    factories.workload(elsewhere, stage.ada, [stage.flavor], "theirs", submitted_at=AT)
    factories.workload(below, stage.ada, [stage.flavor], "deep", submitted_at=AT)
    owner = factories.user("olga")
    factories.member(owner, Role.OWNER, at=stage.project.tenant)
    found = policy_trials.tried(
        actor=actor_for(user=owner),
        of=stage.project.tenant,
        rules=Rules(required_labels={"team": ()}),
        at=LATER,
    )
    assert (found.looked_at, told(found)) == (2, {"required_labels": (2, 2)})
    assert mine.labels == {}


def test_the_latest_are_looked_at_where_there_are_too_many(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_trials, "MOST", 1)
    stage.submit("first", count=2)
    stage.submit("second", count=1)
    found = tried(stage, of=stage.project, max_pods=1)
    assert (found.looked_at, found.all_looked_at, found.refused) == (1, False, 0)


def test_who_may_not_say_it_may_not_try_it_and_what_can_not_be_is_told(stage: Stage) -> None:
    with pytest.raises(NotAllowed):
        tried(stage, of=None, max_pods=1)
    with pytest.raises(Invalid, match="0 is not between 1 and 4,096"):
        tried(stage, of=stage.project, max_pods=0)
