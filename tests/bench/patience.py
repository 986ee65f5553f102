"""Pods that pack badly wait a little for others to go first.

A pod that would leave a gap worth nothing (`Arrivals.waste_milli`) waits while devices are scarce,
and takes its seat once `guard` later arrivals have gone by: nobody is overtaken more often. While
there is room for all that the guard lets by, nobody waits: it would not change what is left over.
Nor when cores run out before devices: then devices stand idle anyhow.
"""

from collections import deque
from typing import Final, NamedTuple

from scheduler.core.node.shapes import Seat, Shape
from tests.bench.arrivals import Arrivals, asked_milli

TOLERANCE: Final = 10
"""A pod wastes little that costs at most a tenth more than it asks for."""


MARGIN_PCT: Final = 110
"""Devices are the scarcer when cores would last at least a tenth longer."""


class Seated(NamedTuple):
    """`number` counts arrivals from 0; `overtaken`: how many came later and went first."""

    number: int
    shape: Shape
    seat: Seat
    overtaken: int


class Patience:
    """A queue before the nodes. Pods that fit nowhere are in `stuck`, by number."""

    def __init__(self, *, on: Arrivals, guard: int) -> None:
        """`guard` bounds how often a pod is overtaken; 0 forbids it."""
        self._on = on
        self._guard = guard
        self._asked = 0
        self._asked_cores = 0
        self._arrivals = 0
        self._waiting: deque[tuple[int, Shape]] = deque()
        self.stuck: dict[int, Shape] = {}

    def arrive(self, shape: Shape) -> list[Seated]:
        """Who takes a seat now that this pod has come: those whose time is up, then it."""
        self._on.see(shape)
        number = self._arrivals
        self._arrivals += 1
        self._asked += asked_milli(shape)
        self._asked_cores += shape.cpu_milli
        seated: list[Seated] = []
        while self._waiting and number - self._waiting[0][0] > self._guard:
            self._sit(*self._waiting.popleft(), number, seated)
        seat = self._on.best(shape)
        if seat is not None and self._wasteful(shape, seat) and self._scarce():
            self._waiting.append((number, shape))
        else:
            self._sit(number, shape, number + 1, seated)
        return seated

    def finish(self) -> list[Seated]:
        """Nobody comes any more: those who wait take their seats in order of arrival."""
        seated: list[Seated] = []
        while self._waiting:
            self._sit(*self._waiting.popleft(), self._arrivals, seated)
        return seated

    def _sit(self, number: int, shape: Shape, arrived: int, seated: list[Seated]) -> None:
        seat = self._on.best(shape)
        if seat is None:
            self.stuck[number] = shape
            return
        self._on.place(shape, seat)
        seated.append(Seated(number, shape, seat, arrived - 1 - number))

    def _scarce(self) -> bool:
        """Whether as many arrivals as may overtake would fill the devices, before the cores."""
        devices, cores = self._on.free_milli, self._on.free_cpu_milli
        soon = devices * self._arrivals < self._asked * self._guard
        return soon and devices * self._asked_cores * MARGIN_PCT < cores * self._asked * 100

    def _wasteful(self, shape: Shape, seat: Seat) -> bool:
        return self._on.waste_milli(shape, seat) * TOLERANCE > asked_milli(shape)
