"""What workloads that have not ended ask for. A process reads it once: nothing changes it after
the submission, and many wait for long."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from scheduler.core.snapshot import ArrayView, PodSetView, TopologyView
from scheduler.core.units import ArrayId, ClusterId, FlavorId, PodSetId
from scheduler.selectors import fleet


class Asked(NamedTuple):
    """Pod sets in their order; `clusters` empty accepts any. `array` is one that has a cap."""

    pod_sets: tuple[PodSetView, ...] = ()
    clusters: tuple[ClusterId, ...] = ()
    topology: TopologyView | None = None
    array: ArrayView | None = None


_known: dict[str, Asked] = {}

_WISHES = """
SELECT w.id::text, w.topology_level, w.topology_required, a.id::text, a.most_at_once
FROM scheduler_workload w
LEFT JOIN scheduler_workloadarray a ON a.id = w.array_id AND a.most_at_once IS NOT NULL
WHERE w.id = ANY(%s::uuid[])
"""
_POD_SETS = """
SELECT s.workload_id::text, s.id::text, s.count, s.min_count, s.cpu_milli, s.memory_mib,
       s.gpu_count, s.gpu_milli,
       array(SELECT f.flavor_id::text FROM scheduler_podsetflavor f
             WHERE f.pod_set_id = s.id ORDER BY f.position)
FROM scheduler_podset s WHERE s.workload_id = ANY(%s::uuid[])
ORDER BY s.workload_id, s.position
"""
_CLUSTERS = """
SELECT workload_id::text, cluster_id::text FROM scheduler_workload_clusters
WHERE workload_id = ANY(%s::uuid[]) ORDER BY 1, 2
"""


def of(workloads: Collection[str]) -> dict[str, Asked]:
    """What these ask for. The others are forgotten: they are to be all that have not ended."""
    global _known
    # Through local names: in a web server other threads read another moment's at the same time.
    known = _known
    unknown = [id for id in workloads if id not in known]
    if unknown:
        known = known | _read(unknown)
    found = _known = {id: known[id] for id in workloads}
    return found


def _read(workloads: Sequence[str]) -> dict[str, Asked]:
    pod_sets: dict[str, list[PodSetView]] = {id: [] for id in workloads}
    clusters: dict[str, list[ClusterId]] = {id: [] for id in workloads}
    for workload, id, *numbers, accepted in fleet.rows(_POD_SETS, [workloads]):
        count, min_count, cpu_milli, memory_mib, gpu_count, gpu_milli = numbers
        view = PodSetView(
            PodSetId(id),
            count,
            min_count,
            cpu_milli,
            memory_mib,
            gpu_count,
            gpu_milli,
            tuple(FlavorId(flavor) for flavor in accepted),
        )
        pod_sets[workload].append(view)
    for workload, cluster in fleet.rows(_CLUSTERS, [workloads]):
        clusters[workload].append(ClusterId(cluster))
    return {
        id: Asked(
            tuple(pod_sets[id]),
            tuple(clusters[id]),
            TopologyView(level, required) if level else None,
            ArrayView(ArrayId(array), most) if array else None,
        )
        for id, level, required, array, most in fleet.rows(_WISHES, [workloads])
    }
