"""`python -m tests.bench.curve_steps PLAN`: openb's arrivals beside a running Berth: wait for the
nodes, submit batch after batch, note after each how full the GPUs are, check, count."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import django

from clusters.port import PodPhase
from controlplane.trace.client import Client
from controlplane.trace.fleet import CLUSTER, Choice, Fleet
from controlplane.trace.plan import Plan
from controlplane.trace.reading import QOS, NodeRow, PodRow
from controlplane.trace.submission import body
from tests.bench import beside
from tests.bench.beside import rows

BATCHES = 40
"""How many ask for as many GPUs as there are: 2.5 % of them each."""
RUNS_S = 10**8
_READY_WITHIN_S = 300.0
_DECIDED_WITHIN_S = 300.0


def main(plan_file: str) -> int:
    django.setup()
    plan = Plan.read(Path(plan_file))
    nodes, pods, services = plan.read_nodes(), plan.read_pods(), dict(plan.services)
    beside.until(
        lambda: beside.ready(len(nodes)),
        "nodes and workers are not there",
        within_s=_READY_WITHIN_S,
    )
    before, began = beside.usages(services), time.monotonic()
    points = list(_curve(plan, nodes, pods))
    wall_s, after = time.monotonic() - began, beside.usages(services)
    figures = {
        "workloads": (len(pods), "workloads"),
        "wall_s": (wall_s, "s"),
        "per_s": (len(pods) / wall_s, "1/s"),
    } | beside.cpu(before, after, simulator=CLUSTER, workloads=len(pods))
    Path(plan.report).write_text(json.dumps({"points": points, "figures": figures}))
    return _verdict()


def batches(pods: Sequence[PodRow], *, milli: int) -> Iterator[tuple[int, list[PodRow]]]:
    """(thousandths of a GPU asked for by its end, the batch) in the order of `pods`; a batch ends
    before the pod that would pass the next part of `milli`, which is all there is."""
    batch: list[PodRow] = []
    asked, number = 0, 1
    for pod in pods:
        if batch and (asked + pod.requested_milli) * BATCHES > number * milli:
            yield asked, batch
            batch, number = [], number + 1
        batch.append(pod)
        asked += pod.requested_milli
    if batch:
        yield asked, batch


def _curve(
    plan: Plan, nodes: Sequence[NodeRow], pods: Sequence[PodRow]
) -> Iterator[tuple[float, float]]:
    """(asked for, running) in per cent of the GPUs, after each batch."""
    client = Client(plan.url, json.loads(Path(plan.tokens).read_text()))
    choice = Choice(Fleet(nodes))
    milli = 1000 * sum(node.gpus for node in nodes)
    for asked, batch in batches(pods, milli=milli):
        # A pod list without classes of service is all of the first.
        client.submit(QOS[0], [body(pod, choice, runs_s=RUNS_S) for pod in batch])
        beside.until(_decided, "a batch is not decided on", within_s=_DECIDED_WITHIN_S)
        point = 100 * asked / milli, 100 * _running_milli() / milli
        print(f"{point[0]:6.2f} % asked for: {point[1]:6.2f} % running", flush=True)
        yield point


def _decided() -> bool:
    """Every workload runs or has been told why it waits."""
    return not rows(
        "SELECT 1 FROM scheduler_workload WHERE state <> 'RUNNING'"
        " AND (state <> 'PENDING' OR reason IS NULL) LIMIT 1"
    )


def _running_milli() -> int:
    """Thousandths of GPUs that placements of running workloads hold."""
    [(milli,)] = rows(
        "SELECT coalesce(sum(p.amount_milli), 0) FROM scheduler_placement p"
        " JOIN scheduler_workload w ON w.id = p.workload_id AND w.state = 'RUNNING'"
        " JOIN clusters_flavor f ON f.id = p.flavor_id AND f.kind <> 'cpu'"
        " WHERE p.released_at IS NULL"
    )
    return int(milli)


def _verdict() -> int:
    """0 when every promise was kept and the cluster's own pods hold what ours say."""
    from clusters import registry  # needs the apps, as these do
    from controlplane.trace.checks import SHARED
    from scheduler.loop.checking.invariants import violations
    from scheduler.loop.checking.rules import told

    problems = list(told(violations()))
    held = sum(
        dict(pod.resources).get(SHARED, 0)
        for pod in registry.connect(CLUSTER).list_pods().items
        if pod.phase is PodPhase.RUNNING
    )
    if held != (ours := _running_milli()):
        problems.append(f"running pods hold {held} thousandths of GPUs, workloads {ours}")
    for problem in problems:
        print(f"WRONG: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
