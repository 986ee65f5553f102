"""The rows that `persist` times: a seeded database, fresh copies of it, a plan applied to one.

What must not live here: starting the servers, for Django has to know them before this is imported.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.core.management import call_command
from django.db import connection

from clusters.models import Device, Flavor
from controlplane.trace import usage
from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.loop import lease
from scheduler.loop.applying import apply
from scheduler.models import PodSet, PodSetFlavor, Workload
from scheduler.selectors.load import load
from tenants.models import Project, User
from tests import factories
from tests.factories import AT

NODES, GPUS, PROJECTS = 2_500, 8, 20
_SEEDED, _COPY = "berth_seeded", "berth_copy"


class Took(NamedTuple):
    """Seconds: of the clock, of the scheduler's processor time, of its connection's."""

    wall_s: float
    python_s: float
    database_s: float


def seed(*, workloads: int) -> None:
    """That many wait, one GPU each, in a database that nothing is connected to any more."""
    call_command("migrate", verbosity=0, interactive=False)
    _rows(workloads)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("SELECT current_database()")
        [name] = cursor.fetchone()
    _connect("postgres")
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" RENAME TO {_SEEDED}')


def _rows(count: int) -> None:
    cluster, flavor, ada = factories.cluster(), factories.flavor(), factories.user("ada")
    tenant = factories.tenant()
    projects = [factories.project(tenant, f"p{index}") for index in range(PROJECTS)]
    for project in projects:
        factories.quota(project, flavor, NODES * GPUS * 1000 // PROJECTS)
    nodes = [factories.node(cluster, f"n{index}", gpus=0) for index in range(NODES)]
    Device.objects.bulk_create(
        Device(node=node, ordinal=ordinal, model=flavor.model, memory_mib=81_920)
        for node in nodes
        for ordinal in range(GPUS)
    )
    waiting(projects, ada, flavor, count)


def waiting(
    projects: Sequence[Project], by: User, flavor: Flavor, count: int, *, at: datetime = AT
) -> list[PodSet]:
    """So many workloads of one GPU, in the projects by turns: their pod sets."""
    workloads = [
        Workload(
            project=projects[index % len(projects)],
            submitted_by=by,
            name=f"w{index}",
            priority_class="normal",
            priority=0,
            submitted_at=at,
        )
        for index in range(count)
    ]
    pod_sets = [
        PodSet(
            workload=workload,
            position=0,
            name="main",
            count=1,
            min_count=1,
            cpu_milli=4000,
            memory_mib=16_384,
            gpu_count=1,
            image="busybox",
        )
        for workload in workloads
    ]
    Workload.objects.bulk_create(workloads)
    PodSet.objects.bulk_create(pod_sets)
    PodSetFlavor.objects.bulk_create(
        PodSetFlavor(pod_set=pod_set, flavor=flavor, position=0) for pod_set in pod_sets
    )
    return pod_sets


def apply_once(*, admitted: int) -> Took:
    """One plan that admits so many and holds the others, applied to a fresh copy of the rows."""
    _connect("postgres")
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {_COPY}")
        cursor.execute(f"CREATE DATABASE {_COPY} TEMPLATE {_SEEDED}")
    _connect(_COPY)
    loaded = load(at=AT)
    decided = plan(loaded.snapshot, Policy(max_admits=admitted))
    held = lease.acquire(shard="fleet")
    assert held is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [backend] = cursor.fetchone()
    apply.BUDGET_S = float("inf")
    begun = time.perf_counter(), time.process_time(), _cpu_s(backend)
    outcome = apply.apply(lease=held, loaded=loaded, plan=decided, at=AT)
    ended = time.perf_counter(), time.process_time(), _cpu_s(backend)
    assert (len(outcome.admitted), len(outcome.refused)) == (admitted, 0), outcome
    return Took(*(after - before for before, after in zip(begun, ended, strict=True)))


def _connect(name: str) -> None:
    """From now on the connection is to that database."""
    connection.close()
    connection.settings_dict["NAME"] = name


def _cpu_s(pid: int) -> float:
    return usage.measure({"": [pid]})[""].cpu_s
