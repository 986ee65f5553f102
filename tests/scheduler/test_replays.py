"""The last days played again from the rows: what is played, for whom, and what is told."""

from datetime import datetime

import pytest

from clusters.models import Flavor
from controlplane.kernel.errors import Invalid, NotAllowed, NotFound
from controlplane.kernel.throttle import TooOften
from scheduler.core.lifecycle import State
from scheduler.core.units import WorkloadId
from scheduler.models import Workload
from scheduler.selectors import arrivals
from scheduler.selectors.history import UNKNOWN_RUN_S
from scheduler.services import replays
from scheduler.services.replays import BACK, Replayed
from tenants.access import actor_for
from tenants.models import PastUse, Project, Role
from tenants.services.quotas import Amounts
from tests import factories
from tests.conftest import Cast
from tests.factories import AT
from tests.scheduler.played import HOUR, NOW, four, ran, told

pytestmark = pytest.mark.usefixtures("one_moment")


@pytest.fixture
def h100(cast: Cast) -> Flavor:
    return four(cast)


def amounts_of(nominal: int, borrow: int | None = None, lend: int | None = None) -> Amounts:
    return Amounts(nominal_milli=nominal, borrowing_limit_milli=borrow, lending_limit_milli=lend)


def both_want_all(cast: Cast, h100: Flavor) -> None:
    for nth in range(4):
        for project in (cast.detection, cast.dialogue):
            ran(project, cast.ben, h100, came=AT + nth * HOUR)


def weigh(cast: Cast, weight: int = 8, *, at: datetime = NOW) -> Replayed:
    actor = actor_for(user=cast.oz)
    return replays.of_weight(actor=actor, of=cast.vision, weight=weight, at=at)


def test_a_tenants_weight_is_tried_on_what_ran(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    found = weigh(cast)
    gains, loses = told(found, cast.detection), told(found, cast.dialogue)
    assert gains.longer_s < 0 < loses.longer_s
    assert (gains.arrivals_count, loses.arrivals_count) == (4, 4)
    assert found.projects[0] is loses  # who loses is told first
    assert (found.since, found.until, found.complete) == (NOW - BACK, NOW, True)
    assert not Workload.objects.exclude(state=State.SUCCEEDED).exists()


def test_a_projects_weight_is_one_among_those_of_its_tenant(cast: Cast, h100: Flavor) -> None:
    third = factories.project(cast.vision, "Third")
    factories.quota(third, h100, 0)
    for nth in range(4):
        for project in (cast.detection, third):
            ran(project, cast.ben, h100, came=AT + nth * HOUR)
    actor = actor_for(user=cast.oz)
    found = replays.of_weight(actor=actor, of=third, weight=9, at=NOW)
    assert told(found, third).longer_s < 0 < told(found, cast.detection).longer_s


def test_a_quota_is_tried_too(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    actor = actor_for(user=cast.oz)
    found = replays.of_quota(
        actor=actor, project=cast.dialogue, flavor=h100, amounts=amounts_of(4000), at=NOW
    )
    assert told(found, cast.dialogue).longer_s < 0 < told(found, cast.detection).longer_s


def test_limits_of_a_quota_are_tried_with_it(cast: Cast, h100: Flavor) -> None:
    """Who may borrow nothing starts nothing; of what nobody lends nobody else does."""
    both_want_all(cast, h100)
    actor = actor_for(user=cast.oz)
    found = replays.of_quota(
        actor=actor, project=cast.dialogue, flavor=h100, amounts=amounts_of(0, 0), at=NOW
    )
    assert told(found, cast.dialogue).after.waiting_count == 4
    assert told(found, cast.detection).longer_s < 0
    found = replays.of_quota(
        actor=actor,
        project=Project.objects.get(name="Spare"),
        flavor=h100,
        amounts=amounts_of(4000, 0, 0),
        at=NOW,
    )
    assert [each.after.waiting_count for each in found.projects] == [4, 4]


def test_what_is_played_is_what_had_not_ended_by_then_and_ever_ran(
    cast: Cast, h100: Flavor
) -> None:
    since = AT
    ran(cast.detection, cast.ben, h100, came=AT - 3 * HOUR, took=2 * HOUR)  # was over
    over_later = ran(cast.detection, cast.ben, h100, came=AT - HOUR, took=2 * HOUR)
    factories.workload(  # nobody knows how long it would have run
        cast.detection, cast.ben, [h100], "given up", state=State.CANCELLED, ended_at=AT + HOUR
    )
    runs = factories.workload(
        cast.detection, cast.ben, [h100], "runs", state=State.RUNNING,
        submitted_at=AT, started_at=NOW - 3 * HOUR,
    )  # fmt: skip
    waits = factories.workload(
        cast.detection, cast.ben, [h100], "waits", run_time_limit_s=600, submitted_at=AT
    )
    factories.workload(cast.detection, cast.ben, [h100], "later", submitted_at=NOW + HOUR)
    found = {each.pending.id: each for each in arrivals.arrivals(since=since, at=NOW).found}
    assert {id: each.run_s for id, each in found.items()} == {
        str(over_later.id): 2 * 3600,
        str(runs.id): 3 * 3600,  # so far
        str(waits.id): 600,
    }
    [pods] = found[WorkloadId(str(over_later.id))].pending.pod_sets
    assert (pods.gpu_count, pods.flavors) == (4, (str(h100.id),))


def test_what_runs_on_is_taken_to_run_as_the_projects_work_usually_does(
    cast: Cast, h100: Flavor
) -> None:
    for hours in (5, 6, 7):
        ran(cast.detection, cast.ben, h100, came=AT, took=hours * HOUR)
    for project in (cast.detection, cast.dialogue):
        factories.workload(project, cast.ben, [h100], "waits", submitted_at=AT)
    waiting = {
        each.pending.project: each.run_s
        for each in arrivals.arrivals(since=NOW - HOUR, at=NOW).found
    }
    assert waiting == {str(cast.detection.id): 6 * 3600, str(cast.dialogue.id): UNKNOWN_RUN_S}


def test_of_more_than_can_be_played_the_end_is(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_want_all(cast, h100)
    monkeypatch.setattr(arrivals, "MOST", 2)
    found = weigh(cast)
    assert (found.since, found.complete) == (AT + 3 * HOUR, False)
    assert sum(each.arrivals_count for each in found.projects) == 2


def test_what_takes_too_long_tells_how_far_it_came(
    cast: Cast, h100: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(cast.detection, cast.ben, h100, came=NOW - BACK)
    for nth in range(3):
        ran(cast.detection, cast.ben, h100, came=AT + nth * HOUR)
    assert weigh(cast).left_count == 0
    monkeypatch.setattr(replays, "BUDGET_S", 0.0)
    found = weigh(cast)
    assert not found.complete
    assert (found.until, found.projects) == (found.since, found.projects)
    assert (sum(each.arrivals_count for each in found.projects), found.left_count) == (1, 3)


def test_what_was_used_before_is_remembered_as_it_was_then(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    bare = told(weigh(cast, 1), cast.detection).before.mean_s
    PastUse.objects.create(
        project=cast.detection, flavor=h100, day=(NOW - BACK).date(), milli_s=4000 * 86_400 * 30
    )
    assert told(weigh(cast, 1), cast.detection).before.mean_s > bare


def test_others_are_one_line_without_a_name(cast: Cast, h100: Flavor) -> None:
    both_want_all(cast, h100)
    ran(cast.segmentation, cast.ben, h100, came=AT)
    within = factories.user("ona")
    factories.member(within, Role.OPERATOR, at=cast.vision)
    found = replays.of_weight(actor=actor_for(user=within), of=cast.detection, weight=2, at=NOW)
    last = found.projects[-1]
    assert (last.project, last.tenant, last.projects_count) == ("", "", 1)
    assert last.arrivals_count == 4
    assert {each.project for each in found.projects} == {"Detection", "Segmentation", ""}


@pytest.mark.parametrize("weight", [0, 1001, -1])
def test_a_weight_that_is_none_is_refused(cast: Cast, weight: int) -> None:
    with pytest.raises(Invalid, match="from 1 to 1000"):
        weigh(cast, weight)


def test_who_may_not_set_it_may_not_try_it(cast: Cast, h100: Flavor) -> None:
    for user, of, refused in (
        (cast.ada, cast.vision, NotAllowed),
        (cast.ada, cast.detection, NotAllowed),
        (cast.cleo, cast.detection, NotFound),
    ):
        with pytest.raises(refused):
            replays.of_weight(actor=actor_for(user=user), of=of, weight=2, at=NOW)
    with pytest.raises(NotAllowed):
        replays.of_quota(
            actor=actor_for(user=cast.ada), project=cast.detection, flavor=h100,
            amounts=amounts_of(1), at=NOW,
        )  # fmt: skip
    with pytest.raises(Invalid):
        replays.of_quota(
            actor=actor_for(user=cast.oz), project=cast.detection, flavor=h100,
            amounts=amounts_of(-1), at=NOW,
        )  # fmt: skip


def test_it_is_counted_among_the_plans_that_one_may_ask_for(cast: Cast) -> None:
    for _ in range(15):
        weigh(cast)
    with pytest.raises(TooOften):
        weigh(cast)
