"""Which nodes stand together: a zone, a block, a rack, an NVLink domain, or whatever the levels of
a snapshot are called.

Levels and domains are Kueue's (Topology Aware Scheduling, KEP 2724): a domain is the nodes of one
cluster that agree in their values from the outermost level down to its own. A node whose value of
a level is unknown is in no domain of it; unknown values further out count as values.
"""

from collections.abc import Sequence

from scheduler.core.fleet.index import Entries, Index, Pool
from scheduler.core.node.fit import Room
from scheduler.core.snapshot import FlavorView
from scheduler.core.units import ClusterId, FlavorId


class Domain:
    """Nodes of a cluster by their ranks, with pools of their own of what has been asked for."""

    __slots__ = ("_beside", "_index", "_of_flavor", "cluster", "path", "ranks")

    def __init__(self, index: Index, cluster: ClusterId, path: tuple[str, ...]) -> None:
        self.cluster = cluster
        self.path = path
        self.ranks: list[int] = []
        self._index = index
        self._beside: dict[int, Pool] = {}
        self._of_flavor: dict[FlavorId, tuple[Pool, ...]] = {}

    def pools_for(self, *, flavor: FlavorView) -> tuple[Pool, ...]:
        """As the index's, of these nodes alone."""
        found = self._of_flavor.get(flavor.id)
        if found is None:
            pools = self._index.pools_for(cluster=self.cluster, flavor=flavor)
            new = [pool.number for pool in pools if pool.number not in self._beside]
            self._beside |= self._index.of_nodes(pools=new, ranks=self.ranks)
            found = self._of_flavor[flavor.id] = tuple(self._beside[pool.number] for pool in pools)
        return found

    def refresh(self, old: Entries, new: Entries) -> None:
        """One of its rooms has changed."""
        for pool, entry in old:
            if pool in self._beside:
                self._beside[pool].discard(entry)
        for pool, entry in new:
            if pool in self._beside:
                self._beside[pool].add(entry)


class Domains:
    """The domains of a draft, level by level; of a level nothing is made before it is asked for.

    `refresh` a room after each change of it, the index first.
    """

    __slots__ = ("_index", "_levels", "_made", "_of_rank")

    def __init__(self, *, levels: Sequence[str], index: Index) -> None:
        self._index = index
        self._levels = levels
        self._made: dict[str, dict[ClusterId, tuple[Domain, ...]]] = {}
        self._of_rank: dict[int, list[Domain]] = {}

    def outwards(self, level: str) -> tuple[str, ...]:
        """The level, then those around it; () of one that there is not."""
        if level not in self._levels:
            return ()
        return tuple(reversed(self._levels[: self._levels.index(level) + 1]))

    def of(self, *, cluster: ClusterId, level: str) -> tuple[Domain, ...]:
        """Those of the level in the cluster, by path."""
        if level not in self._made:
            self._made[level] = self._make(level)
        return self._made[level].get(cluster, ())

    def inside(
        self, *, cluster: ClusterId, level: str, whole: Domain | None
    ) -> tuple[Domain, ...]:
        """Those of the level in the cluster that lie in `whole`, or that alone where it lies in
        one of them."""
        if whole is None or level not in self._levels:
            return self.of(cluster=cluster, level=level)
        depth, path = self._levels.index(level), whole.path
        if depth < len(path):
            return (whole,) if path[depth] else ()
        found = self.of(cluster=cluster, level=level)
        return tuple(domain for domain in found if domain.path[: len(path)] == path)

    def same(self, other: Domain) -> Domain:
        """This draft's of what is `other` in another draft of the same nodes."""
        found = self.of(cluster=other.cluster, level=self._levels[len(other.path) - 1])
        return next(domain for domain in found if domain.path == other.path)

    def at(self, *, cluster: ClusterId, level: str, rank: int) -> Domain | None:
        """The one of the level in which the node of that rank stands."""
        found = self.of(cluster=cluster, level=level)
        return next((domain for domain in found if rank in domain.ranks), None)

    def refresh(self, room: Room, old: Entries, new: Entries) -> None:
        """The room has changed: so have its entries in the index."""
        for domain in self._of_rank.get(room.rank, ()):
            domain.refresh(old, new)

    def _make(self, level: str) -> dict[ClusterId, tuple[Domain, ...]]:
        if level not in self._levels:
            return {}
        depth = self._levels.index(level) + 1
        found: dict[tuple[ClusterId, tuple[str, ...]], Domain] = {}
        for cluster, room in self._index.ranked():
            rank, path = room.rank, room.node.topology[:depth]
            if len(path) == depth and path[-1]:
                domain = found.get((cluster, path))
                if domain is None:
                    domain = found[cluster, path] = Domain(self._index, cluster, path)
                domain.ranks.append(rank)
                self._of_rank.setdefault(rank, []).append(domain)
        listed: dict[ClusterId, list[Domain]] = {}
        for (cluster, _), domain in sorted(found.items(), key=lambda each: each[0]):
            listed.setdefault(cluster, []).append(domain)
        return {cluster: tuple(domains) for cluster, domains in listed.items()}
