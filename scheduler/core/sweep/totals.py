"""What is free in sum, told from a sweep's tables: no room has to be looked at for it."""

from scheduler.core.snapshot import FlavorKind, FlavorView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.filling import Board
from scheduler.core.sweep.hardware import is_by_hand
from scheduler.core.sweep.state import State
from scheduler.core.units import ONE_MILLI, ClusterId


class Totals:
    """Of the draft as the tables have it; None of what is not placed by them."""

    def __init__(self, *, state: State, board: Board) -> None:
        self._state = state
        self._rows = {
            flavor.id: row
            for row, flavor in enumerate(board.flavors)
            if flavor.kind is not FlavorKind.MODEL and not is_by_hand(board.fleet, flavor)
        }
        self._columns = {cluster: column for column, cluster in enumerate(board.clusters)}

    def free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None:
        """As `space.free_milli`."""
        at = self._at(cluster, flavor)
        if at is None:
            return None
        row, pool = at
        if pool < 0:
            return 0
        of = self._state.hardware.pools[pool]
        if of[s.KIND] == s.CUT:
            starts = self._state.flavors.cuts[row, :, s.STARTS]
            return int(of[s.TOTAL :] @ starts) * ONE_MILLI
        return int(of[s.TOTAL]) * (1 if of[s.KIND] == s.CORES else ONE_MILLI)

    def largest_free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None:
        """As `space.largest_free_milli`."""
        at = self._at(cluster, flavor)
        if at is None:
            return None
        row, pool = at
        if pool < 0:
            return 0
        hardware = self._state.hardware
        of = hardware.pools[pool]
        if of[s.KIND] == s.CUT:
            starts = self._state.flavors.cuts[row, of[s.TOTAL :] > 0, s.STARTS]
            return int(starts.max(initial=0)) * ONE_MILLI
        if not of[s.SIZE]:
            return 0
        if of[s.KIND] == s.WHOLE:
            last = int(hardware.entries[of[s.FIRST] + of[s.SIZE] - 1])
            return (last >> s.LEVEL_SHIFT) * ONE_MILLI
        nodes = hardware.nodes
        here = (nodes[:, s.CORES_POOL] == pool) & (nodes[:, s.USABLE] >= 0)
        return int(nodes[here, s.NODE_CPU].max())

    def _at(self, cluster: ClusterId, flavor: FlavorView) -> tuple[int, int] | None:
        """The rows of the flavor and of its pool there, that below 0 where there is none."""
        row, column = self._rows.get(flavor.id), self._columns.get(cluster)
        if row is None or column is None:
            return None
        return row, int(self._state.flavors.pool_of[row, column])
