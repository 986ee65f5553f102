"""What a sweep has started, as admissions."""

from functools import cache

from scheduler.core.plan import Admit, Place
from scheduler.core.snapshot import PendingView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.filling import Board
from scheduler.core.sweep.state import State
from scheduler.core.units import WHOLE_DEVICE, DeviceId, Span

_Pod = tuple[int, int, int, int]
"""Its row of `sets`, its node, its devices as bits, its first slice."""


class Writer:
    """Reads the log, each line once."""

    def __init__(self, *, state: State, board: Board) -> None:
        self._state = state
        self._board = board
        self._told = 0
        self._begin = 0
        self._slices: list[tuple[int, int]] = []
        self._devices: dict[int, list[DeviceId]] = {}
        self._numbers = self._numbers_of_sets()

    def started(self) -> list[tuple[PendingView, Admit]]:
        """What has been started since last asked, in that order."""
        log, board = self._state.log, self._board
        rows = log.admits[self._told : log.counts[s.ADMITTED]]
        if not len(rows):
            return []
        admits = rows.tolist()
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
            started.append((pending, Admit(pending.id, board.clusters[cluster], of_gang)))
        return started

    def _numbers_of_sets(self) -> list[dict[int, int]]:
        """Of each option: its rows of `sets`, and which pod set of the workload each is."""
        work = self._state.work
        numbers, found = work.sets[:, s.NUMBER].tolist(), []
        for first, beyond, option, options_beyond, *_ in work.requests.tolist():
            of = {row: numbers[row] for row in range(first, beyond)}
            found += [of] * (options_beyond - option)
        return found

    def _places(self, pending: PendingView, option: int, pods: list[_Pod]) -> tuple[Place, ...]:
        """By rank, of pods in the order in which they were placed."""
        numbers, flavors = self._numbers[option], self._board.options[option].flavors
        if len(pending.pod_sets) > 1:
            pods.sort(key=lambda pod: numbers[pod[0]])
        nodes, places = self._board.fleet.nodes, []
        for rank, (row, node, devices, first_slice) in enumerate(pods):
            number = numbers[row]
            pod_set = pending.pod_sets[number]
            gpus = pod_set.gpu_count
            places.append(
                Place(
                    pod_set.id,
                    rank,
                    nodes[node].id,
                    flavors[number].id,
                    gpus * pod_set.gpu_milli or pod_set.cpu_milli,
                    pod_set.cpu_milli,
                    pod_set.memory_mib,
                    self._spans(node, devices, first_slice, gpus) if gpus else (),
                )
            )
        return tuple(places)

    def _spans(
        self, node: int, bits: int, first_slice: int, count: int
    ) -> tuple[tuple[DeviceId, Span], ...]:
        devices = self._devices.get(node)
        if devices is None:
            listed = sorted(self._board.fleet.nodes[node].devices, key=lambda d: d.ordinal)
            devices = self._devices[node] = [device.id for device in listed]
        if count == 1 and bits:
            return ((devices[bits.bit_length() - 1], WHOLE_DEVICE),)
        if bits:
            return tuple((id, WHOLE_DEVICE) for d, id in enumerate(devices) if bits >> d & 1)
        first = first_slice - self._begin
        slices = self._slices[first : first + count]
        return tuple([(devices[d], _span(cut)) for d, cut in slices])


@cache
def _span(bits: int) -> Span:
    return Span((bits & -bits).bit_length() - 1, bits.bit_length())
