"""Numbers of a reason in words. No sentence: those are in `reasons`."""

from datetime import UTC, datetime

_LAST = 253402300799
"""The last second that has a date: 31 December 9999."""


def moment(at: int) -> str:
    """A second since the epoch, as a reader of UTC has it."""
    return datetime.fromtimestamp(min(max(at, 0), _LAST), UTC).strftime("%-d %b %Y %H:%M (UTC)")


def outages(milli: dict[str, int]) -> str:
    """In words: clusters are lost, degraded or just back, nodes not ready or cordoned."""
    found = []
    for one, many in (("cluster", "clusters"), ("node", "nodes")):
        count = milli.get(f"{many}_count", 0)
        if count:
            found.append(f"{count} {one if count == 1 else many}")
    kinds = "lost, degraded or just back" if milli.get("clusters_count") else "not ready"
    return f"{' and '.join(found)} {kinds}"


def coming(milli: dict[str, int], pools: str) -> str:
    """Which nodes, how far they are, and how long one takes."""
    count, making = milli.get("nodes_count", 0), milli.get("making_count", 0)
    told = f"{count} more node{'' if count == 1 else 's'} of {pools}"
    if making:
        told += f", of which {making} {'is' if making == 1 else 'are'} being made"
    if "start_s" in milli:
        told += f"; one takes {-(-milli['start_s'] // 60)} min as a rule"
    return f"{told}."


def shape(milli: dict[str, int], pod: str, cores: str) -> str:
    """How many pods of which size are asked for."""
    count, memory_gib = milli.get("pods_count", 0), milli.get("pod_memory_mib", 0) / 1024
    pods = "1 pod of" if count == 1 else f"{count} pods of up to"
    return f"{pods} {pod} with {cores} cores and {memory_gib:g} GiB"


def opens(in_s: int) -> str:
    """When that is."""
    minutes = -(-in_s // 60)
    if not minutes:
        return "now"
    return f"in {minutes} min" if minutes < 120 else f"in {minutes // 60} h"
