"""Where projects stand is read anew, or told from what was read just before."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from controlplane.kernel import clock
from scheduler.selectors.standing import standings
from tenants.models import Project, Quota
from tests import factories
from tests.conftest import Cast

AT = clock.now()
SECOND = timedelta(seconds=1)


@pytest.fixture
def borrowing(cast: Cast) -> Quota:
    """Of Detection, which uses nothing yet and has no guarantee; another has all of it."""
    h100 = factories.flavor()
    factories.quota(cast.dialogue, h100, 8000)
    return factories.quota(cast.detection, h100, 0)


def share_ppm(project: Project, *, after: timedelta) -> int:
    return standings(projects=[project], at=AT + after)[project.id][-1].share_ppm


def test_for_a_moment_what_was_read_last_is_told(borrowing: Quota, settings: Settings) -> None:
    settings.BERTH_STANDING_S = 2
    assert share_ppm(borrowing.project, after=0 * SECOND) == 0
    Quota.objects.filter(id=borrowing.id).update(used_milli=2000)
    with CaptureQueriesContext(connection) as queries:
        assert share_ppm(borrowing.project, after=SECOND) == 0
    assert len(queries) == 1
    assert share_ppm(borrowing.project, after=2 * SECOND) == 250_000


def test_a_project_that_came_since_is_looked_up(
    borrowing: Quota, cast: Cast, settings: Settings
) -> None:
    settings.BERTH_STANDING_S = 2
    assert share_ppm(borrowing.project, after=0 * SECOND) == 0
    new = factories.project(cast.vision, "New")
    found = standings(projects=[borrowing.project, new], at=AT + SECOND)
    assert [each.name for each in found[new.id]] == ["Vision Lab", "New"]


def test_what_is_read_at_a_later_moment_says_nothing_of_an_earlier(
    borrowing: Quota, settings: Settings
) -> None:
    settings.BERTH_STANDING_S = 2
    assert share_ppm(borrowing.project, after=SECOND) == 0
    Quota.objects.filter(id=borrowing.id).update(used_milli=2000)
    assert share_ppm(borrowing.project, after=0 * SECOND) == 250_000
