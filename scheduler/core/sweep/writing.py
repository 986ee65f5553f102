"""What a sweep has started, as admissions."""

from functools import cache
from operator import attrgetter
from typing import NamedTuple

from scheduler.core.plan import Admit, Place
from scheduler.core.quick import quick
from scheduler.core.snapshot import PendingView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.filling import Board
from scheduler.core.sweep.state import State
from scheduler.core.sweep.telling import Teller
from scheduler.core.units import WHOLE_DEVICE, DeviceId, FlavorId, Span

_ADMIT, _PLACE = quick(Admit), quick(Place)
_ORDINAL = attrgetter("ordinal")

_Pod = tuple[int, int, int, int]
"""Its row of `sets`, its node, its devices as bits, its first slice."""


class _Gets(NamedTuple):
    """What each pod of a row of `sets` gets by an option; `number` is its pod set's place in the
    workload."""

    number: int
    flavor: FlavorId
    amount_milli: int
    cpu_milli: int
    memory_mib: int
    gpus: int


class Writer:
    """Reads the log, each line once."""

    def __init__(self, *, state: State, board: Board, teller: Teller) -> None:
        self._state = state
        self._board = board
        self._teller = teller
        self._told = 0
        self._begin = 0
        self._slices: list[tuple[int, int]] = []
        self._wholes: dict[int, list[tuple[DeviceId, Span]]] = {}
        self._gets = self._by_option()

    def started(self) -> list[tuple[PendingView, Admit]]:
        """What has been started since last asked, in that order."""
        log, board = self._state.log, self._board
        rows = log.admits[self._told : log.counts[s.ADMITTED]]
        if not len(rows):
            return []
        admits = rows.tolist()
        choices = self._teller.choices(self._told, admits)
        self._told += len(admits)
        self._begin, end = self._begin + len(self._slices), log.counts[s.SLICED]
        self._slices = log.slices[self._begin : end].tolist()
        first = admits[0][s.FIRST_PLACE]
        places = log.places[first : log.counts[s.PLACED]]
        columns = (s.OF_SET, s.OF_NODE, s.OF_DEVICES, s.FIRST_SLICE)
        pods = list(zip(*(places[:, column].tolist() for column in columns), strict=True))
        begins = [admit[s.FIRST_PLACE] - first for admit in admits] + [len(pods)]
        started, views = [], board.backlog.views[rows[:, s.OF_WORKLOAD]].tolist()
        for nth, (pending, (_, cluster, _, option)) in enumerate(zip(views, admits, strict=True)):
            of_gang = self._places(pending, option, pods[begins[nth] : begins[nth + 1]])
            where, why = board.clusters[cluster], next(choices)
            started.append((pending, _ADMIT(pending.id, where, of_gang, why)))
        return started

    def _by_option(self) -> list[dict[int, _Gets]]:
        """What pods get, by row of `sets`."""
        work, found = self._state.work, list[dict[int, _Gets]]()
        sets = work.sets.tolist()
        for first, beyond, *options, _, _, _, _, _ in work.requests.tolist():
            for option in self._board.options[slice(*options)]:
                gets = {}
                for row in range(first, beyond):
                    _, _, cpu, memory, gpus, amount, number = sets[row]
                    flavor = option.flavors[number].id
                    gets[row] = _Gets(number, flavor, amount, cpu, memory, gpus)
                found.append(gets)
        return found

    def _places(self, pending: PendingView, option: int, pods: list[_Pod]) -> tuple[Place, ...]:
        """By rank, of pods in the order in which they were placed."""
        of, pod_sets, nodes = self._gets[option], pending.pod_sets, self._board.fleet.nodes
        if len(pod_sets) > 1:
            pods.sort(key=lambda pod: of[pod[0]].number)
        places = []
        for rank, (row, node, devices, first_slice) in enumerate(pods):
            number, flavor, amount, cpu, memory, gpus = of[row]
            spans = self._spans(node, devices, first_slice, gpus) if gpus else ()
            id, on = pod_sets[number].id, nodes[node].id
            places.append(_PLACE(id, rank, on, flavor, amount, cpu, memory, spans))
        return tuple(places)

    def _spans(
        self, node: int, bits: int, first_slice: int, count: int
    ) -> tuple[tuple[DeviceId, Span], ...]:
        wholes = self._wholes.get(node)
        if wholes is None:
            listed = sorted(self._board.fleet.nodes[node].devices, key=_ORDINAL)
            wholes = self._wholes[node] = [(device.id, WHOLE_DEVICE) for device in listed]
        if bits:
            return tuple([wholes[d] for d in _ordinals(bits)])
        first = first_slice - self._begin
        return tuple(
            [(wholes[d][0], _span(cut)) for d, cut in self._slices[first : first + count]]
        )


@cache
def _ordinals(bits: int) -> tuple[int, ...]:
    """Those of whole devices."""
    return tuple(d for d in range(bits.bit_length()) if bits >> d & 1)


@cache
def _span(bits: int) -> Span:
    return Span((bits & -bits).bit_length() - 1, bits.bit_length())
