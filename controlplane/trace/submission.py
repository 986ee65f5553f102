"""A pod of the trace → what its user submits, and the batches in the order of arrival. Pure."""

from collections.abc import Iterator, Sequence
from itertools import batched
from typing import Any

from controlplane.trace.fleet import Choice
from controlplane.trace.reading import PodRow

BATCH = 400
"""Pods of one window; the API takes up to 500 workloads of one project at once."""

type Json = dict[str, Any]  # Any: JSON of the API


def body(pod: PodRow, choice: Choice, *, runs_s: int | None = None) -> Json:
    """One workload of one pod, that runs its time. It may borrow, so it may be preempted, which
    its project's least run time keeps off: the trace's pods were not evicted.

    `runs_s` replaces the trace's own run time.
    """
    return {
        "name": pod.name,
        "preemptible": True,
        "labels": {"trace": "openb"},
        "pod_sets": [
            {
                "name": "main",
                "cpu_milli": pod.cpu_milli,
                "memory_mib": pod.memory_mib,
                "gpu_count": pod.gpus,
                "gpu_milli": pod.gpu_milli if pod.gpus else 1000,
                "flavors": list(choice.flavors(pod)),
                "image": "busybox",
                "command": ["sleep", str(runs_s or pod.runs_s)],
            }
        ],
    }


def batches(pods: Sequence[PodRow], *, size: int = BATCH) -> Iterator[tuple[str, list[PodRow]]]:
    """(class of service, its pods of the next window), window after window.

    A batch of the API is one project's, so the order of arrival holds within a project, and
    between projects to within a window.
    """
    for window in batched(pods, size):
        by_qos: dict[str, list[PodRow]] = {}
        for pod in window:
            by_qos.setdefault(pod.qos, []).append(pod)
        yield from by_qos.items()
