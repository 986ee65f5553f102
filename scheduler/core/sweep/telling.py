"""Why what a sweep has started is where it is, and has those flavors: as `choice` tells it."""

from collections.abc import Iterator, Sequence

from scheduler.core.admitting.choice import offers, told
from scheduler.core.placing.place import cheapest_first
from scheduler.core.plan import Choice, PassedFor
from scheduler.core.rates import Rates
from scheduler.core.request import Request
from scheduler.core.snapshot import ClusterView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.filling import Board
from scheduler.core.sweep.state import Log

_PASSED = {
    s.NO_ROOM: PassedFor.ROOM,
    s.NOT_GUARANTEED: PassedFor.GUARANTEE,
    s.NO_QUOTA: PassedFor.LIMIT,
}


class Teller:
    """Reads what the log has beside its admissions."""

    def __init__(
        self, *, log: Log, board: Board, clusters: Sequence[ClusterView], rates: Rates
    ) -> None:
        """`clusters` are all that there are."""
        self._log = log
        self._board = board
        self._clusters = clusters
        self._rates = rates
        requests = board.backlog.samples
        self._request_of = [request for request in requests for _ in request.options]
        self._is_idle = len(clusters) < 2 and all(len(r.options) < 2 for r in requests)

    def choices(self, first: int, admits: Sequence[Sequence[int]]) -> Iterator[Choice | None]:
        """Of these rows of `admits`, which begin with the one of that number."""
        if self._is_idle:
            yield from [None] * len(admits)
            return
        last = first + len(admits)
        offered, passed = self._log.offers[first:last], self._log.passed[first:last]
        empty: list[list[int]] = [[]] * len(admits)
        there = offered.tolist() or empty
        why = passed.tolist() or empty
        for (_, cluster, _, option), of_clusters, of_options in zip(
            admits, there, why, strict=True
        ):
            yield self._choice(self._request_of[option], cluster, option, of_clusters, of_options)

    def _choice(
        self,
        request: Request,
        chosen: int,
        row: int,
        there: Sequence[Sequence[int]],
        why: Sequence[int],
    ) -> Choice | None:
        free, tried = {}, {}
        for cluster, (free_milli, pods) in zip(self._board.clusters, there, strict=False):
            if request.accepts(cluster):
                free[cluster] = free_milli
                if pods != s.UNKNOWN:
                    tried[cluster] = pods
        passed = zip(request.options, why, strict=False) if len(request.options) > 1 else ()
        option = self._board.options[row]
        hourly = self._rates.hourly(option.amounts)
        return told(
            request=request,
            option=option,
            offers=offers(
                clusters=self._clusters,
                request=request,
                free=cheapest_first(free, hourly=hourly),
                tried=tried,
                chosen=self._board.clusters[chosen],
                hourly=hourly,
            ),
            passed={each: _PASSED[code] for each, code in passed if code in _PASSED},
        )
