"""A fleet that is cut into sevenths while halves are waited for, and what is proposed for it."""

from scheduler.core.moving.recut import Pool, Proposal, for_what_waits, towards
from scheduler.core.node.ways import Way
from scheduler.core.snapshot import HoldingView, Snapshot
from scheduler.core.units import ClusterId
from tests.core.build import H100, job, node, pods, runs, snapshot

C1 = ClusterId("c1")
SEVEN = tuple(("1g.10gb", i, i + 1) for i in range(7))
HALVES = (("3g.40gb", 0, 4), ("3g.40gb", 4, 8))
SMALL: Way = (("1g.10gb", 7),)
HALF: Way = (("3g.40gb", 2),)


def fleet(**fields: object) -> Snapshot:
    """Two nodes of two devices in sevenths; three halves are asked for."""
    made = {
        "nodes": [node("n1", 2, cut=SEVEN), node("n2", 2, cut=SEVEN)],
        "pending": [job(f"w{i}", "a", pods(flavors="3g")) for i in range(3)],
    }
    return snapshot(**{**made, **fields})  # type: ignore[arg-type]  # of a snapshot


def pool(of: Snapshot, *, never: str = "", empty_by: int | None = None) -> Pool:
    """All its nodes can be cut anew, but for those named."""
    nodes = (node.id for each in of.clusters for node in each.nodes)
    return Pool(C1, H100, frozenset(id for id in nodes if id not in never.split()), empty_by)


def proposed(*, never: str = "", empty_by: int | None = None, **fields: object) -> Proposal | None:
    made = fleet(**fields)
    of = pool(made, never=never, empty_by=empty_by)
    for_room = [each.id for each in made.pending]
    return for_what_waits(snapshot=made, pool=of, for_room=for_room)


def next_step(
    of: Snapshot, wanted: dict[Way, int], *, never: str = "", empty_by: int | None = None
) -> Proposal | None:
    return towards(snapshot=of, pool=pool(of, never=never, empty_by=empty_by), wanted=wanted)


def small(name: str, at: str, **fields: object) -> HoldingView:
    """Work on the first slice of a device."""
    return runs(name, "a", at, flavor="1g", span=(0, 1), **fields)  # type: ignore[arg-type]


def half(name: str, at: str, start: int) -> HoldingView:
    return runs(name, "a", at, flavor="3g", span=(start, start + 4))
