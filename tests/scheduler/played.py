"""Work of some days to be played again, and the fleet on which it is."""

from datetime import datetime, timedelta
from typing import Any

from clusters.models import Flavor
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from scheduler.services.replays import Replayed, Told
from tenants.models import Project, User
from tests import factories
from tests.conftest import Cast
from tests.factories import AT

HOUR = timedelta(hours=1)
NOW = AT + timedelta(days=2)


def four(cast: Cast) -> Flavor:
    """Four GPUs, which a third tenant lends to who wants them."""
    flavor = factories.flavor()
    factories.node(factories.cluster(), "n1", gpus=4)
    for project in (cast.detection, cast.dialogue):
        factories.quota(project, flavor, 0)
    factories.quota(factories.project(factories.tenant("Pool"), "Spare"), flavor, 4000)
    return flavor


def ran(
    within: Project, by: User, flavor: Flavor, *, came: datetime = AT, took: timedelta = HOUR,
    **fields: Any,  # of a workload
) -> Workload:  # fmt: skip
    return factories.workload(
        within, by, [flavor], "ran", state=State.SUCCEEDED, gpus=4,
        submitted_at=came, started_at=came, ended_at=came + took, **fields,
    )  # fmt: skip


def told(found: Replayed, project: Project) -> Told:
    return next(each for each in found.projects if each.project == project.name)
