"""The fleet and what holds room in it: rooms and their index, kept from one snapshot to the next.

A draft moves things about in a world. When the world follows the next snapshot, each room that was
touched is made anew from its holders, and so is each whose node has changed; in all others holders
come and go. Rooms and pools are made when something is first asked of them: usage alone costs
little.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import is_

from scheduler.core.fleet.index import Index
from scheduler.core.node.fit import Holds, Room
from scheduler.core.quota.quota import Book
from scheduler.core.since import Roster
from scheduler.core.snapshot import DeviceMode, HeldView, HoldingView, NodeView, Snapshot
from scheduler.core.units import ClusterId, FlavorId, NodeId, ProjectId


class World:
    """`follow` a snapshot before anything is asked. `changed` has the nodes that were touched
    since then, and `unread` all whose rooms may be others than they were at any time before; who
    has read them takes them out. A sweep keeps its `tables` of it here."""

    def __init__(self, snapshot: Snapshot) -> None:
        """For this snapshot, and those that have the same nodes, whatever else they have."""
        self.changed: set[NodeId] = set()
        self.unread: set[NodeId] = set()
        self.tables: object = None
        self._flavors = {flavor.id: flavor for flavor in snapshot.flavors}
        self._clusters = [(cluster.id, cluster.usable) for cluster in snapshot.clusters]
        self._listed = {cluster.id: Roster[NodeView]() for cluster in snapshot.clusters}
        self._nodes: dict[NodeId, NodeView] = {}
        for cluster in snapshot.clusters:
            self._listed[cluster.id].follow(cluster.nodes)
            self._nodes.update((node.id, node) for node in cluster.nodes)
        self._shut = {n.id for c in snapshot.clusters if not c.usable for n in c.nodes}
        self._holding = Roster[HoldingView]()
        self._on: dict[NodeId, list[HeldView]] = {}
        self._rooms: dict[NodeId, Room] = {}
        self._stale: set[NodeId] = set()
        self._touched: set[NodeId] = set()
        self._index: Index | None = None
        self._behind: set[NodeId] = set()
        self._book = _book(snapshot)
        self._tree = snapshot.cohorts, snapshot.queues
        self._usage = dict[tuple[ProjectId, FlavorId], int]()
        self._overdrawn: set[NodeId] = set()
        self._cut: dict[str, int] = {}

    def follow(
        self,
        *,
        snapshot: Snapshot,
        holding: Sequence[HoldingView],
        known: Roster[HoldingView] | None = None,
    ) -> bool:
        """Be the fleet of the snapshot, with these holders in it; `known` may have followed them.
        False when it can't be, and is of no further use."""
        if not self._follow_nodes(snapshot):
            return False
        self._stale |= self._touched
        self._touched, self.changed = set(), set()
        self._holding.follow(holding, like=known)
        self._follow_holders()
        self.unread |= self._stale
        self._follow_use(snapshot)
        return True

    def twin(self) -> "World":
        """Another, as this one was before anything was moved about in it. Most of it is copied,
        which costs less than to make it anew."""
        twin = copy(self)
        twin.tables, twin.changed, twin.unread, twin._touched = None, set(), set(), set()
        twin._stale, twin._behind = self._stale | self._touched, set(self._behind)
        twin._listed = {cluster: copy(listed) for cluster, listed in self._listed.items()}
        twin._holding, twin._nodes = copy(self._holding), dict(self._nodes)
        twin._on = {node: list(on) for node, on in self._on.items()}
        twin._rooms = {node: room.copy() for node, room in self._rooms.items()}
        twin._index = None if self._index is None else self._index.twin(twin._rooms)
        twin._book, twin._usage = self._book.copy(), self._usage.copy()
        twin._overdrawn, twin._cut = set(self._overdrawn), dict(self._cut)
        return twin

    def beside(
        self, nodes: dict[NodeId, NodeView], more: Sequence[tuple[ClusterId, NodeView]]
    ) -> "World":
        """These rooms in another index, in which every cluster takes something new, `nodes` are in
        the place of those of here, and `more` are there after them. To ask what would fit: what
        is moved there is moved here too, and has to be taken back before anybody looks."""
        index, beside = self.index(), copy(self)
        beside.changed, beside.unread, beside._touched = set(), set(), set()
        new = {node.id: node for _, node in more}
        beside._nodes, beside._cut = {**self._nodes, **nodes, **new}, {}
        beside._shut, beside._behind = set(), set(nodes)
        own = {id: self._rooms[id].copy(node=node) for id, node in nodes.items()}
        beside._rooms = {**self._rooms, **own, **{id: Room(node=node) for id, node in new.items()}}
        beside._index = index.beside()
        if more:
            beside._index.extend((cluster, beside._rooms[node.id]) for cluster, node in more)
        return beside

    def only(self, nodes: Sequence[tuple[ClusterId, NodeView]]) -> "World":
        """These nodes alone, in the order of an index, each of which takes something new."""
        rooms, only = self.rooms(), copy(self)
        only.changed, only.unread, only._touched = set(), set(), set()
        only._nodes, only._cut = {node.id: node for _, node in nodes}, {}
        only._shut, only._stale, only._behind = set(), set(), set()
        only._rooms = {node.id: rooms[node.id].copy(node=node) for _, node in nodes}
        only._index = Index(rooms=((cluster, only._rooms[n.id], True) for cluster, n in nodes))
        return only

    @property
    def holders(self) -> int:
        """How many workloads hold something in it."""
        return len(self._holding.listed)

    @property
    def has_index(self) -> bool:
        """Whether somebody has asked for it."""
        return self._index is not None

    def book(self) -> Book:
        """Usage against quota: a copy, for the caller to change."""
        return self._book.copy()

    def held(self) -> Mapping[NodeId, Room]:
        """The nodes on which something is held, and at times others. To be read."""
        nodes = self._stale & self._nodes.keys()
        for id in nodes:
            self._make_anew(self._nodes[id])
        if self._index is not None:
            self._behind |= nodes
        self._stale = set()
        return self._rooms

    def overdrawn(self) -> list[Room]:
        """Where more is held than there is, as the snapshot says. As `held`."""
        self.held()
        return [self._rooms[node] for node in self._overdrawn]

    def cut_on_demand(self, model: str) -> int:
        """How many such devices of the model there are where something new may start."""
        if model not in self._cut:
            nodes = self._nodes.items()
            self._cut[model] = sum(_cut(n, model) for id, n in nodes if id not in self._shut)
        return self._cut[model]

    def rooms(self) -> Mapping[NodeId, Room]:
        """All nodes, in no order. To be read; an index ranks them."""
        self.held()
        if len(self._rooms) < len(self._nodes):
            for id, node in self._nodes.items():
                if id not in self._rooms:
                    self._rooms[id] = Room(node=node)
        return self._rooms

    def index(self, moved: Iterable[NodeId] = (), others: Iterable["World"] = ()) -> Index:
        """The nodes that take something new; these have `moved` since it was asked for last. The
        first is made like that of one of the `others`, if one of the same nodes has one."""
        rooms = self.rooms()
        if self._index is None:
            self._index = self._index_like(others) or Index(rooms=self._all())
        for node in self._behind.union(moved):
            usable = self._nodes[node].usable and node not in self._shut
            self._index.renew(rooms[node], usable=usable)
        self._behind = set()
        return self._index

    def _index_like(self, others: Iterable["World"]) -> Index | None:
        """The twin of another's; where the two may differ it is behind."""
        nodes = [listed.listed for listed in self._listed.values()]
        for other in others:
            theirs = [listed.listed for listed in other._listed.values()]
            alike = (other._clusters, other._flavors) == (self._clusters, self._flavors)
            if other._index is not None and alike and all(map(is_, nodes, theirs)):
                self._behind = self._touched | other._touched | other._stale | other._behind
                apart = Roster[HoldingView]()
                for listed in (other._holding.listed, self._holding.listed):
                    apart.follow(listed)
                for held in (*apart.gone, *apart.come):
                    self._behind.update(p.node for p in held.placements)
                self._behind &= self._nodes.keys()
                return other._index.twin(self._rooms)
        return None

    def room(self, node: NodeId) -> Room | None:
        """To be changed, until the next snapshot; None when there is no such node."""
        room = self._rooms.get(node)
        if room is not None:
            self._touched.add(node)
            self.changed.add(node)
            self.unread.add(node)
        return room

    def move(self, moves: Iterable[tuple[bool, Holds]]) -> set[NodeId]:
        """Let each take its room, or give it back; the nodes that have changed. On a node that
        there is not nothing happens."""
        rooms, flavors, nodes = self._rooms, self._flavors, set[NodeId]()
        for add, holder in moves:
            room = rooms.get(holder.node)
            if room is not None:
                nodes.add(holder.node)
                move = room.take if add else room.give
                move(holder=holder, flavor=flavors.get(holder.flavor))
        for touched in (self._touched, self.changed, self.unread):
            touched |= nodes
        return nodes

    def _follow_nodes(self, snapshot: Snapshot) -> bool:
        if self._clusters != [(cluster.id, cluster.usable) for cluster in snapshot.clusters]:
            return False
        if self._flavors != {flavor.id: flavor for flavor in snapshot.flavors}:
            return False
        for cluster in snapshot.clusters:
            listed = self._listed[cluster.id]
            listed.follow(cluster.nodes)
            if {n.id: n.name for n in listed.gone} != {n.id: n.name for n in listed.come}:
                return False
            self._nodes.update((node.id, node) for node in listed.come)
            self._stale.update(node.id for node in listed.come)
            for model in self._cut if cluster.usable else ():
                self._cut[model] += sum(_cut(node, model) for node in listed.come)
                self._cut[model] -= sum(_cut(node, model) for node in listed.gone)
        return True

    def _follow_holders(self) -> None:
        left = [p for held in self._holding.gone for p in held.placements]
        gone = {placement.id for placement in left}
        for node in {placement.node for placement in left}:
            self._on[node] = [p for p in self._on[node] if p.id not in gone]
        come = [p for held in self._holding.come for p in held.placements]
        for placement in come:
            self._on.setdefault(placement.node, []).append(placement)
        self._change((*((False, p) for p in left), *((True, p) for p in come)))

    def _change(self, moves: Iterable[tuple[bool, HeldView]]) -> None:
        """In rooms that are as their holders say: these holders have come or gone. Others are made
        anew, and so is one in which that can't be undone."""
        changed = set[NodeId]()
        for add, holder in moves:
            room = self._rooms.get(holder.node)
            if room is None or room.broken or holder.node in self._stale:
                self._stale.add(holder.node)
                continue
            move = room.take if add else room.give
            move(holder=holder, flavor=self._flavors.get(holder.flavor))
            changed.add(holder.node)
        for node in changed:
            self._note(self._rooms[node])
        self.unread |= changed
        if self._index is not None:
            self._behind |= changed

    def _follow_use(self, snapshot: Snapshot) -> None:
        more = dict[tuple[ProjectId, FlavorId], int]()
        for sign, some in ((1, self._holding.come), (-1, self._holding.gone)):
            for held in some:
                for p in held.placements:
                    key = held.project, p.flavor
                    more[key] = more.get(key, 0) + sign * p.amount_milli
        for key, amount in more.items():
            self._usage[key] = self._usage.get(key, 0) + amount
        if self._tree != (snapshot.cohorts, snapshot.queues):
            self._book = _book(snapshot)
            self._tree, more = (snapshot.cohorts, snapshot.queues), self._usage
        for (project, flavor), amount in more.items():
            self._book.charge(project=project, flavor=flavor, amount_milli=amount)

    def _make_anew(self, node: NodeView) -> None:
        room = self._rooms.get(node.id)
        if room is None:
            room = self._rooms[node.id] = Room(node=node)
        else:
            room.empty(node=node)
        for placement in self._on.get(node.id, ()):
            room.take(holder=placement, flavor=self._flavors.get(placement.flavor))
        self._note(room)

    def _note(self, room: Room) -> None:
        """It is as its holders say now."""
        if room.is_overdrawn:
            self._overdrawn.add(room.node.id)
        else:
            self._overdrawn.discard(room.node.id)

    def _all(self) -> Iterator[tuple[ClusterId, Room, bool]]:
        """In order, once all are there: each node's room, and whether it takes something new."""
        for cluster, usable in sorted(self._clusters):
            for node in sorted(self._listed[cluster].listed, key=lambda n: (n.name, n.id)):
                yield cluster, self._rooms[node.id], usable and node.usable


def _cut(node: NodeView, model: str) -> int:
    """Devices of the model there that are cut on demand; 0 where nothing new starts."""
    if not node.usable:
        return 0
    on_demand = DeviceMode.MIG_DYNAMIC
    return sum(d.usable and d.mode is on_demand and d.model == model for d in node.devices)


def _book(snapshot: Snapshot) -> Book:
    return Book(cohorts=snapshot.cohorts, queues=snapshot.queues, flavors=snapshot.flavors)
