"""Where the pods of work that asks to be together stand, as the labels of their nodes are now."""

from django.conf import settings

from clusters.models import Node
from scheduler.models import Attempt, PodSet, Workload


def asked(*, workload: Workload) -> str:
    """In what all its pods have to be, or had better be, in words; "" when anywhere."""
    if not workload.topology_level:
        return ""
    return f"one {workload.topology_level}{_wish(workload)}"


def of_set(*, pod_set: PodSet) -> str:
    """The same of the pods of one set."""
    if not pod_set.topology_level:
        return ""
    size = pod_set.topology_group_size
    which = "all of them" if size is None else f"each {size} by rank"
    return f"{which} in one {pod_set.topology_level}{_wish(pod_set)}"


def _wish(of: Workload | PodSet) -> str:
    return "" if of.topology_required else " if it can be"


def domain(*, workload: Workload) -> tuple[tuple[str, str], ...]:
    """(level, value) of each level in which all pods of its newest attempt are in one domain, the
    outermost first; () for work that may be anywhere, at no cost."""
    if not workload.topology_level:
        return ()
    levels = settings.BERTH_TOPOLOGY_LEVELS
    newest = Attempt.objects.filter(workload=workload).order_by("-number")[:1]
    nodes = Node.objects.filter(placements__attempt__in=newest).distinct()
    places = [node.topology(levels) for node in nodes]
    found: list[tuple[str, str]] = []
    for level in levels:
        values = {place.get(level, "") for place in places}
        if len(values) != 1:
            break
        found += [(level, value) for value in values if value]
    return tuple(found)
