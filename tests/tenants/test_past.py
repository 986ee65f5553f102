"""Past use: what the ledger adds up by day, and what is left of it as half-lives go by."""

from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection, transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from clusters.models import Cluster, Flavor
from controlplane.settings.env import integer
from tenants.models import PastUse, Project, User
from tenants.selectors import past
from tenants.services import ledger
from tenants.services.past import Interval
from tests import factories
from tests.scheduler.remembered import differing

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class Scene:
    """A project that uses h100, here and there."""

    def __init__(self) -> None:
        self.user: User = factories.user("ada")
        self.project: Project = factories.project(factories.tenant())
        self.h100: Flavor = factories.flavor()
        self.clusters: list[Cluster] = [factories.cluster("north"), factories.cluster("south")]

    def used(
        self, seconds: float, *, start: datetime = NOON, gpus: int = 1, cluster: int = 0
    ) -> Interval:
        return Interval(
            project_id=self.project.id,
            flavor_id=self.h100.id,
            cluster_id=self.clusters[cluster].id,
            user_id=self.user.id,
            placement_id=uuid4(),
            workload_id=uuid4(),
            amount_milli=gpus * 1000,
            begins_at=start,
            ends_at=start + timedelta(seconds=seconds),
        )

    def remembered(self, *, at: datetime) -> int:
        """In whole units of the flavor times seconds."""
        found = past.decayed(at=at).get((str(self.project.id), str(self.h100.id)), 0)
        return found // 1000


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_days_use_is_one_sum_over_all_clusters(scene: Scene) -> None:
    ledger.record([scene.used(60, gpus=2), scene.used(30, cluster=1)])
    ledger.record([scene.used(10), scene.used(5, start=NOON + DAY)])
    rows = PastUse.objects.order_by("day").values_list("day", "milli_s")
    assert list(rows) == [(date(2026, 11, 21), 160_000), (date(2026, 11, 22), 5000)]
    assert differing() == []


def test_intervals_that_touch_make_up_the_whole_whatever_parts_of_seconds_they_meet_at(
    scene: Scene,
) -> None:
    cuts = [NOON, NOON + timedelta(seconds=0.9), NOON + timedelta(seconds=1.999999)]
    cuts.append(NOON + timedelta(seconds=3))
    for start, end in pairwise(cuts):
        ledger.record([scene.used((end - start).total_seconds(), start=start)])
    assert PastUse.objects.get().milli_s == 3000
    assert differing() == []


def test_what_is_refused_is_not_remembered(scene: Scene) -> None:
    usage = scene.used(60)
    ledger.record([usage])
    again = scene.used(60)._replace(placement_id=usage.placement_id)
    with pytest.raises(IntegrityError, match="usage_metered_once"), transaction.atomic():
        ledger.record([again])
    assert PastUse.objects.get().milli_s == 60_000


@pytest.mark.parametrize(
    ("days", "left"), [(0, 800), (7, 400), (14, 200), (21, 100), (69, 0), (70, 0), (400, 0)]
)
def test_use_is_halved_for_each_half_life(scene: Scene, days: int, left: int) -> None:
    ledger.record([scene.used(800)])
    assert scene.remembered(at=NOON + days * DAY) == left


def test_the_half_life_is_a_setting_and_zero_forgets_all(scene: Scene, settings: Settings) -> None:
    ledger.record([scene.used(800)])
    settings.BERTH_HALF_LIFE_DAYS = 1
    assert scene.remembered(at=NOON + 3 * DAY) == 100
    settings.BERTH_HALF_LIFE_DAYS = 0
    assert past.decayed(at=NOON) == {}
    assert past.window_s() == 0


@pytest.mark.parametrize("wrong", ["-1", "366", "seven", ""])
def test_a_half_life_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("BERTH_HALF_LIFE_DAYS", wrong)
    with pytest.raises(ImproperlyConfigured, match=r"BERTH_HALF_LIFE_DAYS .* from 0 to 365"):
        integer("BERTH_HALF_LIFE_DAYS", 7, low=0, high=365)


@given(half_life=st.integers(1, 30))
def test_steady_use_for_ever_is_remembered_as_the_window(half_life: int) -> None:
    whole = sum(86_400 * 2 ** (-age / half_life) for age in range(40 * half_life))
    with override_settings(BERTH_HALF_LIFE_DAYS=half_life):
        assert past.window_s() == round(whole)


def test_what_was_metered_before_is_remembered_by_the_migration(scene: Scene) -> None:
    ledger.record([scene.used(60.5, start=NOON + timedelta(seconds=0.7)), scene.used(0.2)])
    ledger.record([scene.used(7, start=NOON - DAY)])
    PastUse.objects.all().delete()
    migration = import_module("tenants.migrations.0008_past_use_of_before")
    with connection.cursor() as cursor:
        cursor.execute(migration.REMEMBER)
    assert PastUse.objects.count() == 2
    assert differing() == []
