"""`python -m tests.bench.kueue_steps PLAN`: Kueue's baseline beside a running Berth: wait for the
nodes, submit at the generator's times, wait for the end, check, count."""

import json
import sys
import time
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean

import django

from controlplane.trace.client import Client
from controlplane.trace.submission import Json
from tests.bench import beside
from tests.bench.beside import Report, rows
from tests.bench.kueue import KINDS, MEMORY_MIB, NODES, Arrival, arrivals

WINDOW_S = 1.0
_READY_WITHIN_S = 300.0
_END_WITHIN_S = 1800.0
_SIMULATOR = "kueue"  # called after its cluster


def main(plan_file: str) -> int:
    django.setup()
    from controlplane.kernel.clock import now  # needs the settings

    plan: Json = json.loads(Path(plan_file).read_text())
    services = {name: tuple(words) for name, words in plan["services"]}
    beside.until(
        lambda: beside.ready(NODES), "nodes and workers are not there", within_s=_READY_WITHIN_S
    )
    before = beside.usages(services)
    began_at = now()
    submitted_s = _submit(Client(plan["url"], json.loads(Path(plan["tokens"]).read_text())))
    beside.until(_all_over, "it does not end", within_s=_END_WITHIN_S)
    costs = beside.cpu(
        before, beside.usages(services), simulator=_SIMULATOR, workloads=len(arrivals())
    )
    report = {"submit_s": (submitted_s, "s")} | _facts(began_at) | costs
    Path(plan["report"]).write_text(json.dumps(report))
    return _verdict()


def _submit(client: Client) -> float:
    """Everything, at its time or, where the API can't keep up, later; seconds it took."""
    waiting = arrivals()[::-1]
    began, turn = time.monotonic(), 0
    while waiting:
        turn += 1
        time.sleep(max(0.0, began + turn * WINDOW_S - time.monotonic()))
        passed_ms = (time.monotonic() - began) * 1000
        batches: dict[int, list[Json]] = defaultdict(list)
        while waiting and waiting[-1].at_ms <= passed_ms:
            arrival = waiting.pop()
            batches[arrival.queue].append(_body(arrival))
        for queue, items in batches.items():
            client.submit(str(queue), items)
    return time.monotonic() - began


def _body(arrival: Arrival) -> Json:
    kind = arrival.kind
    return {
        "name": arrival.name,
        "priority_class": kind.priority_class,
        "pod_sets": [
            {
                "name": "main",
                "cpu_milli": kind.units * 1000,
                "memory_mib": MEMORY_MIB,
                "gpu_count": 0,
                "flavors": ["cpu"],
                "image": "busybox",
                "command": ["sleep", str(kind.runs_ms / 1000)],
            }
        ],
    }


def _all_over() -> bool:
    return not rows("SELECT 1 FROM scheduler_workload WHERE ended_at IS NULL LIMIT 1")


def _verdict() -> int:
    """0 when all have succeeded and every promise was kept."""
    from scheduler.loop.checking.invariants import violations  # needs the apps
    from scheduler.loop.checking.rules import told

    problems = list(told(violations()))
    states = dict(rows("SELECT state, count(*) FROM scheduler_workload GROUP BY state"))
    if set(states) != {"SUCCEEDED"}:
        problems.append(f"not all have succeeded: {states}")
    for problem in problems:
        print(f"WRONG: {problem}")
    return 1 if problems else 0


_ADMITTED = """
SELECT w.name, min(e.at) FROM scheduler_workload w
JOIN scheduler_workloadevent e ON e.workload_id = w.id AND e.after = 'ADMITTED' GROUP BY w.name
"""
_SUMS = """
SELECT count(*), extract(epoch FROM max(ended_at) - min(submitted_at))::float8,
       (SELECT count(*) FROM scheduler_workloadevent WHERE after = 'PREEMPTING')
FROM scheduler_workload
"""
_CYCLES = """
SELECT count(*), avg(load_ms)::float8, avg(plan_ms)::float8, avg(apply_ms)::float8
FROM scheduler_cyclerecord
"""


def _facts(began_at: datetime) -> Report:
    [(count, length_s, evicted)] = rows(_SUMS)
    [(cycles, load_ms, plan_ms, apply_ms)] = rows(_CYCLES)
    admitted: dict[str, datetime] = dict(rows(_ADMITTED))
    waits: dict[str, list[float]] = defaultdict(list)
    for arrival in arrivals():
        due_at = began_at + timedelta(milliseconds=arrival.at_ms)
        waits[arrival.kind.name].append((admitted[arrival.name] - due_at).total_seconds())
    return {
        "per_s": (count / length_s, "1/s"),
        "length_s": (length_s, "s"),
        **{f"{kind.name}_mean_wait_s": (fmean(waits[kind.name]), "s") for kind in KINDS},
        "evictions": (evicted, "evictions"),
        "cycles": (cycles, "cycles"),
        "load_mean_ms": (load_ms, "ms"),
        "plan_mean_ms": (plan_ms, "ms"),
        "apply_mean_ms": (apply_ms, "ms"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
