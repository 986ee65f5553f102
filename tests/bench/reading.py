"""How soon and at what cost in memory the watcher knows a large cluster, and hears of changes.

`watch_clusters` begins, as a process of its own, on a database without a node and a simulated
cluster with 5,000 nodes and 50,000 foreign pods; the clock goes from its start until all rows are
there and the cluster counts as heard. Then 10,000 pods of Berth start, 500 a second: each event's
delay is from just before the API server tells it until the start in its placement's row is
committed, of which PostgreSQL notifies.

What must not live here: starting the servers, for Django has to know them before this is imported.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from django.core.management import call_command
from django.db import connection
from django.db.models import F, Sum

from clusters.models import Cluster, ClusterState, Node
from clusters.services import credentials
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import Attempt, Placement, Workload
from tests import factories
from tests.bench.decisions import waiting
from tests.bench.report import ROOT, Figures, percentile
from tests.waiting import eventually

NODES, FOREIGN, OURS, PER_S = 5_000, 50_000, 10_000, 500
FOREIGN_CPU_MILLI = 500
WITHIN_S = 120.0
_TELL = """
CREATE FUNCTION bench_told() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('bench', NEW.pod_uid); RETURN NULL; END $$;
CREATE TRIGGER bench_told AFTER UPDATE OF started_at ON scheduler_placement FOR EACH ROW
WHEN (OLD.started_at IS NULL AND NEW.started_at IS NOT NULL) EXECUTE FUNCTION bench_told();
"""


def take(figures: Figures) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    with _process("tests.bench.crowd", str(NODES), str(FOREIGN)) as crowd:
        where = _line(crowd)
        cluster = factories.cluster(state=ClusterState.NEW)
        credentials.store(
            cluster=cluster,
            credential=credentials.read(where),
            actor="bench",
            actor_name="bench",
            at=clock.now(),
        )
        begun = time.perf_counter()
        with _process("manage", "watch_clusters") as watcher:
            eventually("all is known", lambda: _known(cluster, FOREIGN), within_s=WITHIN_S)
            figures.add(
                "sync_5000_nodes_50000_pods_s", time.perf_counter() - begun, "s", at_most=60
            )
            figures.add(
                "sync_5000_nodes_50000_pods_mib", _peak_mib(watcher.pid), "MiB", at_most=500
            )
            delays = _delays(crowd, cluster)
            figures.add("event_to_row_count", len(delays), "events")
            figures.add("event_to_row_rate", PER_S, "events/s")
            figures.add("event_to_row_p50_ms", percentile(delays, 50) * 1000, "ms")
            figures.add("event_to_row_p99_ms", percentile(delays, 99) * 1000, "ms", at_most=500)
            figures.add("watcher_peak_mib", _peak_mib(watcher.pid), "MiB")


def _known(cluster: Cluster, foreign: int) -> bool:
    cluster.refresh_from_db()
    if cluster.state != ClusterState.ACTIVE:
        return False
    nodes = Node.objects.filter(cluster=cluster)
    held = nodes.aggregate(held=Sum("foreign_cpu_milli"))["held"]
    return nodes.count() == NODES and held == foreign * FOREIGN_CPU_MILLI


def _delays(crowd: "subprocess.Popen[str]", cluster: Cluster) -> list[float]:
    """Of each event, in seconds."""
    pods = _bound(cluster)
    with connection.cursor() as cursor:
        cursor.execute(_TELL)
    assert _ask(crowd, {"do": "make", "pods": pods}) == {"made": OURS}
    # All at once, they are more than is measured here: they are taken in first.
    eventually("they are known", lambda: _known(cluster, FOREIGN + 1), within_s=WITHIN_S)
    with psycopg.connect(_url(), autocommit=True) as listener:
        listener.execute("LISTEN bench")
        assert crowd.stdin
        print(json.dumps({"do": "start", "per_s": PER_S}), file=crowd.stdin, flush=True)
        seen: dict[str, float] = {}
        for notice in listener.notifies(timeout=WITHIN_S):
            seen[notice.payload] = time.time()
            if len(seen) == OURS:
                break
    told: dict[str, float] = _line(crowd)
    assert seen.keys() == told.keys(), f"{len(seen)} of {len(told)} starts were stored"
    return [seen[uid] - at for uid, at in told.items()]


def _bound(cluster: Cluster) -> list[tuple[str, str, str, str]]:
    """Rows of workloads whose pods are open: what the crowd has to make."""
    flavor, ada = factories.flavor(), factories.user("ada")
    project = factories.project(factories.tenant())
    factories.quota(project, flavor, OURS * 1000)
    at = clock.now() - timedelta(minutes=1)
    nodes = list(Node.objects.filter(cluster=cluster).order_by("name"))
    pod_sets = waiting([project], ada, flavor, OURS, at=at)
    Workload.objects.update(state=State.BOUND.value, version=F("version") + 1, admitted_at=at)
    attempts = [
        Attempt(workload=each.workload, number=1, cluster=cluster, epoch=1, created_at=at)
        for each in pod_sets
    ]
    placements = [
        Placement(
            workload=pod_set.workload,
            attempt=attempt,
            pod_set=pod_set,
            rank=0,
            node=nodes[nth % NODES],
            flavor=flavor,
            amount_milli=1000,
            cpu_milli=1000,
            memory_mib=1024,
            pod_name=f"w{nth}-1-0",
            pod_uid=str(uuid4()),
            opened_at=at,
            created_at=at,
        )
        for nth, (attempt, pod_set) in enumerate(zip(attempts, pod_sets, strict=True))
    ]
    Attempt.objects.bulk_create(attempts)
    Placement.objects.bulk_create(placements)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return [(str(p.workload_id), p.pod_uid, p.pod_name, p.node.name) for p in placements]


@contextmanager
def _process(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "BERTH_CLUSTER_NETWORKS": "127.0.0.1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _ask(process: "subprocess.Popen[str]", asked: object) -> Any:  # Any: JSON
    assert process.stdin
    print(json.dumps(asked), file=process.stdin, flush=True)
    return _line(process)


def _line(process: "subprocess.Popen[str]") -> Any:  # Any: JSON
    assert process.stdout
    return json.loads(process.stdout.readline())


def _peak_mib(pid: int) -> float:
    """The most memory that it has held at once."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError("the system does not tell the peak")


def _url() -> str:
    return os.environ["DATABASE_URL"]
