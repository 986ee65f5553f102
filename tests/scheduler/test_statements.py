"""How many statements each phase of the loop costs: as many for one workload as for six."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.port import PodPhase
from scheduler.models import Placement, Workload
from scheduler.selectors import fleet
from scheduler.services import workloads
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import LATER, Stage

MOST = {"submit": 18, "cycle": 35, "dispatch": 18, "running": 10, "ended": 19}
"""Counted with the savepoints that stand here for transactions."""


def costs(stage: Stage, count: int) -> dict[str, int]:
    """The way of so many workloads, phase by phase."""
    spent: dict[str, int] = {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        with CaptureQueriesContext(connection) as queries:
            yield
        spent[name] = len(queries)

    specs = [spec(name=f"{count}-{index}", flavor=stage.flavor.name) for index in range(count)]
    with phase("submit"):
        workloads.submit(actor=stage.actor, project=stage.project, specs=specs, at=AT)
    with phase("cycle"):
        stage.cycle()
    with phase("dispatch"):
        stage.dispatch()
    placed = list(Placement.objects.filter(released_at=None).select_related("workload__project"))
    for name, come_to in (("running", PodPhase.RUNNING), ("ended", PodPhase.SUCCEEDED)):
        reports = [stage.report(each, come_to, started_at=AT) for each in placed]
        with phase(name):
            stage.observe(*reports, at=LATER)
    return spent


def test_they_do_not_grow_with_the_workloads(stage: Stage) -> None:
    costs(stage, 1)  # what a process reads once
    spent = costs(stage, 1)
    assert spent == costs(stage, 6)
    assert spent.keys() == MOST.keys()
    assert all(spent[name] <= most for name, most in MOST.items()), spent
    assert set(Workload.objects.values_list("state", flat=True)) == {"SUCCEEDED"}


def test_why_they_wait_is_written_on_their_own_pages(stage: Stage) -> None:
    """A version on another page gets an entry in each of the table's indexes."""
    specs = [spec(name=f"w{index}", flavor=stage.flavor.name) for index in range(200)]
    workloads.submit(actor=stage.actor, project=stage.project, specs=specs, at=AT)
    pages = "SELECT id, (ctid::text::point)[0] FROM scheduler_workload"
    before: dict[UUID, float] = dict(fleet.rows(pages))
    Workload.objects.update(reason={"code": "behind", "numbers": {}, "text": "behind others"})
    stays = sum(before[id] == page for id, page in fleet.rows(pages))
    assert stays > len(specs) * 0.25
