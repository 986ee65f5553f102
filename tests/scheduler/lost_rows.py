"""Pods of attempts whose rows the database lost, and what the watch does with a list of them."""

import time
from functools import partial
from typing import Any
from uuid import uuid4

from clusters.port import PodPhase, PodReport
from scheduler.core.lifecycle import State
from scheduler.loop.adopting import unknown
from scheduler.loop.adopting.adopt import Strays
from scheduler.loop.observing import observe
from scheduler.models import Workload
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage


def runs(stage: Stage, of: Workload, /, **fields: Any) -> PodReport:  # Any: a report's
    """A pod of a later attempt, which is in the cluster and in no row."""
    attempt, rank, asks = fields.get("attempt", 1), fields.get("rank", 0), of.pod_sets.get()
    told = {
        "namespace": stage.project.namespace,
        "name": f"w{of.id.hex}-{attempt}-{rank}",
        "uid": str(uuid4()),
        "resource_version": "1",
        "phase": PodPhase.RUNNING,
        "node": "n2",
        "installation": "berth",
        "workload": str(of.id),
        "attempt": 1,
        "created_at": AT,
        "started_at": AT,
        "cpu_milli": asks.cpu_milli,
        "memory_mib": asks.memory_mib,
        "resources": (("nvidia.com/gpu", asks.gpu_count),),
    }
    pod = PodReport(**{**told, **fields})
    stage.port.pods[pod.name] = pod
    return pod


def listed(stage: Stage, strays: Strays | None = None, *, put_back: bool = True) -> Strays:
    """As the watch does with a whole list."""
    strays = strays or Strays(stage.cluster)
    owns = partial(_owns, stage)
    expected = observe.expected(cluster_id=stage.cluster.id)
    reports = stage.port.list_pods().items
    if put_back:
        unknown.recognise(cluster=stage.cluster, reports=reports, owns=owns, at=LATER)
    found = unknown.find(reports)
    unknown.number_above(found)
    found = unknown.believed(cluster=stage.cluster, found=found, owns=owns if put_back else None)
    unknown.supersede(cluster=stage.cluster, found=found, reports=reports, at=LATER)
    observe.listed(cluster_id=stage.cluster.id, reports=reports, expected=expected, at=LATER)
    strays.listed(found, at=LATER)
    return strays


def _owns(stage: Stage, namespace: str) -> bool:
    return stage.port.owns_namespace(namespace=namespace)


def state(workload: Workload) -> State:
    workload.refresh_from_db()
    return State(workload.state)


def waits_with(stage: Stage, workload: Workload) -> dict[str, Any]:  # Any: a reason's JSON
    """Why it was not started by a cycle."""
    assert stage.cycle(at=LATER).admitted == frozenset()
    workload.refresh_from_db()
    found: dict[str, Any] = workload.reason or {}
    return found


def in_a_while(strays: Strays) -> list[str]:
    strays._due = time.monotonic()
    return strays.take_in_when_due(at=LATER)
