"""Reordering by `berth`, against a real server."""

import pytest

from clusters.models import Flavor, FlavorKind
from scheduler.models import Workload
from tests import factories
from tests.cli.conftest import Berth
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.part_web]


def test_it_reorders_workloads_and_arrays(berth: Berth, cast: Cast) -> None:
    flavor = Flavor.objects.get(kind=FlavorKind.WHOLE)
    first, second = (factories.workload(cast.detection, cast.ben, [flavor]) for _ in range(2))
    done = berth("priority", str(second.id), "--first")
    assert done.output == f"workload {second.id} PENDING\n"
    assert Workload.objects.get(id=second.id).turn_of == first.id
    array = factories.array(cast.detection, cast.ben, [flavor])
    done = berth("priority", f"array:{array.id}", "high", "--last")
    assert done.exit_code == 0, done.output
    assert {each.priority_class for each in array.elements.all()} == {"high"}


def test_it_says_what_it_wants(berth: Berth, cast: Cast) -> None:
    work = factories.workload(
        cast.detection, cast.ben, [Flavor.objects.get(kind=FlavorKind.WHOLE)]
    )
    assert "Say a priority, --first or --last" in berth("priority", str(work.id)).output
    assert "'low', 'normal', 'high', 'urgent'" in berth("priority", str(work.id), "top").output
