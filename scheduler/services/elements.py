"""The elements of an array behind its first, copied from it in the database: ten thousand are made
by as many statements as two."""

from uuid import UUID

from controlplane.kernel import bulk
from controlplane.kernel.ids import uuid7s
from scheduler.models import PodSet, PodSetFlavor, Workload, WorkloadArray


def name(of: str, index: int) -> str:
    """What an element of the array called so is called."""
    return f"{of}[{index}]"


def copy(*, first: Workload, array: WorkloadArray) -> list[tuple[UUID, str]]:
    """Store the others like `first`, which was stored just now with its pod sets, its clusters and
    its event; their ids, which ascend by index, and names. In the caller's transaction."""
    ids = uuid7s(array.size - 1)
    names = [name(array.name, index) for index in range(1, array.size)]
    bulk.copy(first, id=ids, name=names, array_index=range(1, array.size))
    for pod_set in PodSet.objects.filter(workload=first).order_by("position"):
        sets = _new(ids)
        bulk.copy(pod_set, id=sets, workload_id=ids)
        for accepted in PodSetFlavor.objects.filter(pod_set=pod_set).order_by("position"):
            bulk.copy(accepted, id=_new(ids), pod_set_id=sets)
    for event in first.events.all():
        bulk.copy(event, id=_new(ids), workload_id=ids)
    places = Workload.clusters.through
    places.objects.bulk_create(
        places(workload_id=id, cluster_id=cluster.id)
        for cluster in first.clusters.all()
        for id in ids
    )
    return list(zip(ids, names, strict=True))


def _new(like: list[UUID]) -> list[UUID]:
    return uuid7s(len(like))
