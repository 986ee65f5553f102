"""Pods that others made in the cluster of a stage, and what their owners tell."""

from typing import Any
from uuid import uuid4

from clusters.caught import CaughtPod, OwnerRef, OwnerReport
from clusters.port import PodPhase, PodReport
from scheduler.loop.catching import catch
from scheduler.loop.pods import caught
from scheduler.models import CaughtPod as Row
from scheduler.models import Workload
from tests.factories import AT
from tests.scheduler.stage import Stage

JOB = OwnerRef("batch/v1", "Job", "train", "job-1")
GPUS = (("nvidia.com/gpu", 4),)


def made(stage: Stage, name: str, *, owner: OwnerRef | None = JOB, **fields: Any) -> PodReport:
    """A caught pod in the cluster; Any: fields of its report, or of what it says."""
    said = {key: fields.pop(key) for key in list(fields) if key in CaughtPod.__slots__}
    told: dict[str, Any] = {
        "namespace": stage.project.namespace,
        "name": name,
        "uid": str(uuid4()),
        "resource_version": "1",
        "phase": PodPhase.GATED,
        "cpu_milli": 1000,
        "memory_mib": 512,
        "resources": GPUS,
        "created_at": AT,
        "caught": CaughtPod(owner=owner, image="train:1", creator="ada", **said),
    }
    pod = PodReport(**{**told, **fields})
    stage.port.pods[name] = pod
    return pod


def owns(stage: Stage, owner: OwnerRef = JOB, **sizes: int) -> None:
    told = {"" if part == "all" else part: size for part, size in sizes.items()}
    stage.port.owners[owner.uid] = OwnerReport(owner, tuple(sorted(told.items())))


def take_in(stage: Stage, *, at: Any = AT) -> None:  # Any: a moment
    """As the watch does."""
    caught.listed(cluster_id=stage.cluster.id, reports=stage.port.list_pods().items, at=at)
    catch.take_in(port=stage.port, cluster=stage.cluster, at=at)


def refusal(name: str) -> str:
    return Row.objects.get(name=name, pod_set=None).refusal


def gang(stage: Stage, *names: str) -> Workload:
    """A Job's workload, whose pods are all there."""
    owns(stage, all=len(names))
    for name in names:
        made(stage, name)
    take_in(stage)
    return Workload.objects.get()
