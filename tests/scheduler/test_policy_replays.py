"""The last days played again under another policy: what comes, how, and what is told of it."""

from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Flavor
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from scheduler.selectors import arrivals
from scheduler.services import policy_changes, policy_trials, replays, submissions
from scheduler.services.policy_changes import Coming
from scheduler.services.replays import BACK, RefusedBy, Replayed
from tenants.access import Place, actor_for
from tenants.models import Project, Role, SubmitPolicy, User
from tenants.policy import Rules
from tenants.selectors import policies as selectors
from tenants.services import policies
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.scheduler.played import HOUR, NOW, four, ran, told

pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    return four(cast)


def both_want_all(cast: Cast, h100: Flavor, **fields: Any) -> None:
    for nth in range(4):
        for project in (cast.detection, cast.dialogue):
            ran(project, cast.ben, h100, came=AT + nth * HOUR, **fields)


def say(cast: Cast, of: Place, **rules: Any) -> None:
    policies.set_policy(
        actor=actor_for(user=cast.oz), of=of, rules=Rules(**rules), version=0, at=AT
    )


def played(user: User, of: Place, *, at: datetime = NOW, **rules: Any) -> Replayed:
    return replays.of_policy(actor=actor_for(user=user), of=of, rules=Rules(**rules), at=at)


def coming(cast: Cast, of: Place, **rules: Any) -> Coming:
    since = NOW - BACK
    return policy_changes.coming(
        came=arrivals.arrivals(since=since, at=NOW).found,
        actor=actor_for(user=cast.oz),
        of=of,
        rules=Rules(**rules),
        since=since,
    )


def test_what_it_refuses_does_not_come_and_others_wait_less(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    found = played(cast.oz, cast.detection, max_gpus_milli=3000, images=("other/*",))
    first, second = told(found, cast.detection), told(found, cast.dialogue)
    assert found.projects[0] is first
    assert (first.arrivals_count, first.refused_count, first.cut_count) == (4, 4, 0)
    assert first.refused_by == (RefusedBy("images", 4), RefusedBy("max_gpus_milli", 4))
    assert (second.refused_count, second.refused_by) == (0, ())
    assert second.longer_s < 0
    assert not SubmitPolicy.objects.exists()


@pytest.mark.parametrize("said", [{}, {"max_run_time_s": 600, "default_labels": {"a": "b"}}])
def test_one_that_is_said_already_changes_no_play(
    cast: Cast, h100: Flavor, said: dict[str, Any]
) -> None:
    both_want_all(cast, h100)
    say(cast, cast.vision, **said)
    found = played(cast.oz, cast.vision, **said)
    assert [each.before for each in found.projects] == [each.after for each in found.projects]
    assert {(each.refused_count, each.cut_count) for each in found.projects} == {(0, 0)}
    assert coming(cast, cast.vision, **said).otherwise == {}


def test_a_lower_limit_ends_the_runs_of_who_said_none(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    found = played(cast.oz, cast.detection, max_run_time_s=600)
    cut = told(found, cast.detection)
    assert (cut.refused_count, cut.cut_count) == (0, 4)
    assert told(found, cast.dialogue).longer_s < 0


def test_a_limit_that_is_todays_default_counts_as_not_said(cast: Cast, h100: Flavor) -> None:
    say(cast, cast.detection, max_run_time_s=7200)
    default = ran(cast.detection, cast.ben, h100, run_time_limit_s=7200)
    said = ran(cast.detection, cast.ben, h100, run_time_limit_s=7000)
    found = coming(cast, cast.detection, max_run_time_s=600)
    [(changed, arrival)] = [(id, each) for id, each in found.otherwise.items() if each]
    assert (changed, arrival.run_s) == (str(default.id), 600)
    assert arrival.pending.run_time_limit_s == 600
    assert found.refused_by == {str(said.id): {"max_run_time_s"}}
    trial = policy_trials.tried(
        actor=actor_for(user=cast.oz), of=cast.detection, rules=Rules(max_run_time_s=600), at=NOW
    )
    assert (trial.looked_at, trial.refused) == (2, 1)


def test_defaults_are_of_the_whole_chain_with_the_change(cast: Cast, h100: Flavor) -> None:
    """A default that a limit above does not permit any more gives way to it."""
    say(cast, cast.detection, default_run_time_s=1800, default_labels={"team": "a"})
    ran(cast.detection, cast.ben, h100)
    found = coming(cast, cast.vision, max_run_time_s=900, required_labels={"team": ("a",)})
    [changed] = found.otherwise.values()
    assert changed is not None
    assert changed.pending.run_time_limit_s == 900
    [arrival] = found.arrivals
    assert (arrival.pending.run_time_limit_s, arrival.run_s) == (1800, 1800)


def test_a_default_priority_is_had_by_what_has_todays(cast: Cast, h100: Flavor) -> None:
    normal = ran(cast.detection, cast.ben, h100)
    ran(cast.detection, cast.ben, h100, priority_class="high")
    found = coming(cast, cast.detection, default_priority_class="low")
    assert {id: each and each.pending.priority for id, each in found.otherwise.items()} == {
        str(normal.id): -100
    }


def test_what_todays_rules_refuse_comes_in_neither(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    say(cast, cast.detection, images=("other/*",))
    found = played(cast.oz, cast.detection, max_gpus_milli=1000, images=("other/*",))
    assert [(each.project, each.refused_count) for each in found.projects] == [("Dialogue", 0)]


def test_only_what_came_since_and_below_the_place_is_asked(cast: Cast, h100: Flavor) -> None:
    before = NOW - BACK - HOUR
    ran(cast.detection, cast.ben, h100, came=before, took=2 * HOUR)
    ran(cast.dialogue, cast.ben, h100)
    mine = ran(cast.detection, cast.ben, h100)
    found = coming(cast, cast.vision, max_gpus_milli=1000)
    assert found.otherwise == {str(mine.id): None}
    assert len(found.arrivals) == 3
    assert len(coming(cast, None, max_gpus_milli=1000).otherwise) == 2


def test_each_element_of_an_array_is_asked(cast: Cast, h100: Flavor) -> None:
    factories.array(cast.detection, cast.ben, [h100], size=3)
    assert len(coming(cast, cast.detection, images=("other/*",)).otherwise) == 3


def test_what_came_after_where_it_ends_is_not_counted(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_want_all(cast, h100)
    ran(cast.detection, cast.ben, h100, came=NOW - BACK)
    monkeypatch.setattr(replays, "BUDGET_S", 0.0)
    found = played(cast.oz, cast.detection, images=("other/*",))
    [only] = found.projects
    assert (found.complete, only.arrivals_count, only.refused_count) == (False, 1, 1)
    assert only.refused_by == (RefusedBy("images", 1),)


def test_owners_see_their_own_and_the_others_as_one(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    ran(cast.segmentation, cast.ben, h100)
    found = played(cast.ada, cast.detection, images=("other/*",))
    assert [each.project for each in found.projects] == ["Detection", "Segmentation", ""]
    assert found.projects[-1].projects_count == 1
    owner = factories.user("olive")
    factories.member(owner, Role.OWNER, at=cast.detection)
    found = played(owner, cast.detection, images=("other/*",))
    assert [each.project for each in found.projects] == ["Detection", ""]
    assert found.projects[-1].projects_count == 2


def test_who_may_not_say_it_may_not_play_it(cast: Cast, h100: Flavor) -> None:
    for user, of, refused in (
        (cast.ada, None, NotAllowed),
        (cast.ben, cast.detection, NotAllowed),
        (cast.cleo, cast.detection, NotFound),
        (cast.cleo, cast.vision, NotFound),
    ):
        with pytest.raises(refused):
            played(user, of, max_pods=1)


def test_what_can_not_be_said_is_not_played(cast: Cast, h100: Flavor) -> None:
    say(cast, cast.vision, max_pods=2)
    with pytest.raises(Invalid, match="3 is more than the 2 that Vision Lab permits"):
        played(cast.ada, cast.detection, max_pods=3)
    with pytest.raises(Invalid, match="0 is not between 1 and 4,096"):
        played(cast.ada, cast.detection, max_pods=0)


def test_a_place_that_is_tried_on_is_one_of_many(cast: Cast) -> None:
    """What is said anywhere, read at once, is as what is said of each."""
    deep = factories.project(factories.tenant("Deep", parent=cast.vision), "Well")
    for of, pods in ((None, 9), (cast.vision, 8), (deep.tenant, 7), (deep, 6), (cast.speech, 5)):
        say(cast, of, max_pods=pods)
    everywhere = selectors.everywhere()
    for project in Project.objects.all():
        assert everywhere.chain(project) == selectors.of_project(project)
    then = everywhere.otherwise(cast.vision, Rules(max_gpus_milli=1)).chain(deep)
    assert [each.by for each in then] == ["the fleet", "Vision Lab", "Deep", "Well"]
    assert then[1].rules == Rules(max_gpus_milli=1)
    assert len(everywhere.otherwise(cast.detection, Rules()).chain(cast.detection)) == 3


def test_a_week_is_read_by_as_many_queries_as_it_has_lots(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        ran(cast.detection, cast.ben, h100)

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert len(coming(cast, cast.detection, images=("b",)).refused_by) == 4
        return len(seen)

    queries()  # a process reads what work asks for once
    one_lot = queries()
    monkeypatch.setattr(submissions, "AT_ONCE", 2)
    assert queries() == one_lot + 3  # pod sets, what they accept, clusters
