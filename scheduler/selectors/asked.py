"""What workloads that have not ended ask for. A process reads it once: many wait for long, and
nothing changes it but a flavor that comes to have what is wished, which `asks_version` tells."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from scheduler.core.snapshot import Isolation, PodSetView, SetTopologyView, TopologyView
from scheduler.core.submitted import ArrayView
from scheduler.core.units import ArrayId, ClusterId, FlavorId, PodSetId
from scheduler.selectors import fleet


class Asked(NamedTuple):
    """Pod sets in their order; `clusters` empty accepts any. `array` is one that has a cap."""

    pod_sets: tuple[PodSetView, ...] = ()
    clusters: tuple[ClusterId, ...] = ()
    topology: TopologyView | None = None
    array: ArrayView | None = None


_known: dict[str, tuple[int, Asked]] = {}

_WORKLOADS = """
SELECT w.id::text, w.topology_level, w.topology_required, a.id::text, a.most_at_once
FROM scheduler_workload w
LEFT JOIN scheduler_workloadarray a ON a.id = w.array_id AND a.most_at_once IS NOT NULL
WHERE w.id = ANY(%s::uuid[])
"""
_POD_SETS = """
SELECT s.workload_id::text, s.id::text, s.count, s.min_count, s.cpu_milli, s.memory_mib,
       s.gpu_count, s.gpu_milli, s.topology_level, s.topology_required, s.name,
       s.topology_group_size, s.gpu_memory_mib, s.least_isolation, s.any_order,
       array(SELECT f.flavor_id::text FROM scheduler_podsetflavor f
             WHERE f.pod_set_id = s.id ORDER BY f.position)
FROM scheduler_podset s WHERE s.workload_id = ANY(%s::uuid[])
ORDER BY s.workload_id, s.position
"""
_CLUSTERS = """
SELECT workload_id::text, cluster_id::text FROM scheduler_workload_clusters
WHERE workload_id = ANY(%s::uuid[]) ORDER BY 1, 2
"""


def of(versions: Mapping[str, int]) -> dict[str, Asked]:
    """What workloads of this `asks_version` ask for."""
    global _known
    # Through local names: in a web server other threads read another moment's at the same time.
    known = _known
    unknown = [id for id, n in versions.items() if id not in known or known[id][0] != n]
    if unknown:
        known = known | {id: (versions[id], ask) for id, ask in _read(unknown).items()}
        _known = known
    return {id: known[id][1] for id in versions}


def keep(*live: Collection[str]) -> None:
    """Forget what is known of all others: these are to be all that have not ended."""
    global _known
    known = _known
    if gone := set(known).difference(*live):
        _known = {id: one for id, one in known.items() if id not in gone}


def _read(workloads: Sequence[str]) -> dict[str, Asked]:
    pod_sets: dict[str, list[PodSetView]] = {id: [] for id in workloads}
    clusters: dict[str, list[ClusterId]] = {id: [] for id in workloads}
    for workload, id, *numbers, accepted in fleet.rows(_POD_SETS, [workloads]):
        *numbers, gpu_memory_mib, isolation, any_order = numbers
        count, min_count, cpu_milli, memory_mib, gpu_count, gpu_milli, *topology = numbers
        view = PodSetView(
            PodSetId(id),
            count,
            min_count,
            cpu_milli,
            memory_mib,
            gpu_count,
            gpu_milli,
            tuple(FlavorId(flavor) for flavor in accepted),
            SetTopologyView(*topology) if topology[0] else None,
            gpu_memory_mib,
            Isolation(isolation),
            any_order,
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
        for id, level, required, array, most in fleet.rows(_WORKLOADS, [workloads])
    }
