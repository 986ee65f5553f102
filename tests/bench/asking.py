"""A large installation, its pages read one by one, and its API asked by several at once.

What must not live here: starting the servers, for Django has to know them before this is imported.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from controlplane.kernel import clock
from scheduler.models import PodSet, PodSetFlavor, Workload
from tenants.models import Project, Role, Scope, Tenant, User
from tests import factories
from tests.bench import wall
from tests.bench.decisions import waiting
from tests.bench.report import ROOT, Figures, percentile
from tests.waiting import eventually

PROJECTS, WORKLOADS, CLIENTS, WEB_WORKERS = 1_000, 100_000, 8, 2
ORGANISATIONS, DEPARTMENTS = 11, 100
PORT = 18_931
WITHIN_S = 60.0
LISTS = {
    "home": 22, "workload-list": 10, "queue": 19, "quota-list": 10, "tenant-list": 10,
    "request-list": 18, "spend": 9, "cluster-list": 16, "audit-list": 6, "budget-list": 8,
    "reservation-list": 8, "workload-submit": 12,
}  # fmt: skip
"""The most queries that each may take."""


def take(figures: Figures, *, seconds: int) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    operator, member, projects = _rows()
    _pages(figures, operator)
    _ask(figures, member, projects, seconds=seconds)
    wall.take(figures, member, operator)


def _rows() -> tuple[User, User, list[Project]]:
    """An operator of the fleet, a member of one organisation, and what they see."""
    tops = [factories.tenant(f"Organisation {nth}") for nth in range(ORGANISATIONS)]
    below = [
        factories.tenant(f"Department {nth}", parent=tops[nth % ORGANISATIONS])
        for nth in range(DEPARTMENTS)
    ]
    projects = [
        factories.project(below[nth % DEPARTMENTS], f"Project {nth}") for nth in range(PROJECTS)
    ]
    flavor, cluster = factories.flavor(), factories.cluster()
    for nth in range(20):
        factories.node(cluster, f"n{nth}")
    for project in projects:
        factories.quota(project, flavor, 8000)
    operator, member = factories.user("oz"), factories.user("ben")
    factories.member(operator, Role.OPERATOR)
    factories.member(member, Role.MEMBER, at=tops[0])
    waiting(projects, member, flavor, PROJECTS, at=clock.now())
    for nth, project in enumerate(projects):
        factories.budget(project)
        if nth % 5 == 0:
            factories.quota_request(project, flavor, member)
            factories.reservation(project, flavor, operator)
    with connection.cursor() as cursor:
        cursor.execute(_COPIES, [WORKLOADS // PROJECTS - 1])
        for model, ids in (
            (Workload, {"id": "c.workload"}),
            (PodSet, {"id": "c.pod_set", "workload_id": "c.workload"}),
            (PodSetFlavor, {"id": "uuidv7()", "pod_set_id": "c.pod_set"}),
        ):
            _copy(cursor, model, ids)
        cursor.execute("VACUUM ANALYZE")
    assert Workload.objects.count() == WORKLOADS
    assert Tenant.objects.count() == ORGANISATIONS + DEPARTMENTS
    return operator, member, projects


_COPIES = """
CREATE TEMPORARY TABLE copies AS
SELECT w.id AS of_workload, s.id AS of_pod_set, uuidv7() AS workload, uuidv7() AS pod_set
FROM generate_series(1, %s), scheduler_workload w JOIN scheduler_podset s ON s.workload_id = w.id
"""
_OF: dict[type[Model], str] = {Workload: "c.of_workload = t.id", PodSet: "c.of_pod_set = t.id",
       PodSetFlavor: "c.of_pod_set = t.pod_set_id"}  # fmt: skip


def _copy(cursor: CursorWrapper, model: type[Model], ids: Mapping[str, str]) -> None:
    """Each row once for each of its copies, with other ids."""
    columns = [field.column for field in model._meta.concrete_fields if field.column]
    values = ", ".join(ids.get(column, f"t.{column}") for column in columns)
    cursor.execute(
        f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) SELECT {values}"
        f" FROM {model._meta.db_table} t JOIN copies c ON {_OF[model]}"
    )


def _pages(figures: Figures, operator: User) -> None:
    client = Client(HTTP_HOST="localhost")
    client.force_login(operator)
    for name, most in LISTS.items():
        url = reverse(name)
        client.get(url)  # what a process reads once
        with CaptureQueriesContext(connection) as queries:
            begun = time.perf_counter()
            answer = client.get(url)
            took = time.perf_counter() - begun
        assert answer.status_code == 200, url
        key = name.replace("-", "_")
        figures.add(f"page_{key}_queries", len(queries), "queries", at_most=most)
        figures.add(f"page_{key}_ms", took * 1000, "ms")
        figures.add(f"page_{key}_kib", len(answer.content) / 1024, "KiB")


def _ask(figures: Figures, member: User, projects: Sequence[Project], *, seconds: int) -> None:
    mine = [each for each in projects if each.tenant.parent_id == projects[0].tenant.parent_id]
    works = Workload.objects.filter(project=projects[0]).values_list("id", flat=True)[:20]
    paths = [
        "/api/v1/me",
        "/api/v1/projects?limit=50",
        *(f"/api/v1/projects/{each.id}" for each in mine[:5]),
        "/api/v1/workloads?limit=50",
        *(f"/api/v1/workloads?project={each.id}&limit=50" for each in mine[:5]),
        *(f"/api/v1/workloads/{id}" for id in works),
        *(f"/api/v1/quotas?project={each.id}" for each in mine[:5]),
        "/api/v1/rates",
        *(f"/api/v1/queues/{each.id}" for each in mine[:5]),
        *(f"/api/v1/quota-requests?project={each.id}" for each in mine[:3]),
    ]
    token = factories.token(member, Scope.READ, Scope.SUBMIT)
    with _web():
        asked = {
            "port": PORT, "paths": paths, "headers": factories.bearer(token),
            "clients": CLIENTS, "seconds": seconds,
        }  # fmt: skip
        done = subprocess.run(  # our own module
            [sys.executable, "-m", "tests.bench.askers"],
            input=json.dumps(asked), capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
    found = json.loads(done.stdout)
    took: dict[str, list[float]] = found["took"]
    assert found["not_200"] == {}, found["not_200"]
    everything = [each for times in took.values() for each in times]
    figures.add("api_requests_per_s", len(everything) / found["elapsed_s"], "/s", at_least=300)
    figures.add("api_p50_ms", percentile(everything, 50) * 1000, "ms")
    figures.add("api_p99_ms", percentile(everything, 99) * 1000, "ms", at_most=300)
    for kind, times in sorted(took.items()):
        name = kind.strip("/").replace("/", "_").replace("-", "_")
        figures.add(f"api_{name}_p50_ms", percentile(times, 50) * 1000, "ms")


@contextmanager
def _web() -> Iterator[None]:
    """The web server as docker/web runs it: with a pool of connections, which tests have not."""
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings.dev"}
    command = [
        sys.executable, "-m", "uvicorn", "controlplane.asgi:application", "--port", str(PORT),
        "--workers", str(WEB_WORKERS), "--lifespan", "off", "--no-access-log",
        "--log-level", "warning",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, env=environ) as server:  # our own
        try:
            eventually("it answers", _answers, within_s=WITHIN_S)
            yield
        finally:
            server.terminate()
            server.wait()


def _answers() -> bool:
    from http.client import HTTPConnection  # only here

    try:
        link = HTTPConnection("127.0.0.1", PORT, timeout=5)
        link.request("GET", "/healthz")
        return link.getresponse().status == 200
    except OSError:
        return False
