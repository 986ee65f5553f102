"""Who may be evicted, each at what it loses for one of the pods that find room by it.

A gang, or work on more of a node than one pod asks for, makes room for several pods. Counted in
full for the first of them it seems dearer than it is in the end.
"""

from collections.abc import Iterator, Sequence

from scheduler.core.evicting.eligible import Eligible
from scheduler.core.held.victims import Cost, Victim, harm
from scheduler.core.units import ClusterId, NodeId


class PerPod:
    """As `cheapest` asks for them, those whose whole harm is less than `below` alone.

    `pods` find room by all who go, each by `need_milli` of what is lost, in thousandths of a
    seventh of a device.
    """

    def __init__(self, eligible: Eligible, *, below: Cost, pods: int, need_milli: int) -> None:
        self._eligible = eligible
        self._below = below
        self._pods = pods
        self._need_milli = need_milli

    def in_cluster(self, cluster: ClusterId) -> Iterator[Victim]:
        """At the least that each costs on any node."""
        found = [
            self._priced(victim, min(map(victim.held.given_milli, victim.held.on)))
            for victim in less_than(self._below, self._eligible.in_cluster(cluster))
        ]
        return iter(sorted(found, key=harm))

    def on_node(self, node: NodeId) -> list[Victim]:
        """At what each costs there."""
        return sorted(
            (
                self._priced(victim, victim.held.given_milli(node))
                for victim in self._eligible.on_node(node)
                if victim.cost < self._below
            ),
            key=harm,
        )

    def may_go(self, victim: Victim, before: Sequence[Victim]) -> bool:
        return self._eligible.may_go(victim, before)

    def _priced(self, victim: Victim, here_milli: int) -> Victim:
        """It gives a pod no more than that needs, and no more pods than there are."""
        kind, priority, lost_milli_s, pods = victim.cost
        total = victim.held.sevenths_milli
        part = max(min(here_milli, self._need_milli), -(-total // self._pods))
        if part >= total:
            return victim
        cost = kind, priority, lost_milli_s * part // total, max(1, pods * part // total)
        return victim._replace(cost=cost)


def less_than(below: Cost, victims: Iterator[Victim]) -> Iterator[Victim]:
    """The first of these, who come least harm first."""
    for victim in victims:
        if victim.cost >= below:
            return
        yield victim
