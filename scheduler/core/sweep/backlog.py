"""Who waits, in tables that are kept from one plan to the next and changed by what has changed.

They say the same as tables made from nothing. Which numbers stand for what may differ; nothing
that is planned goes by those.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.core.admitting.order import turn
from scheduler.core.quota.quota import Book
from scheduler.core.request import SHAPE, Request, Requests
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.sweep import state as s
from scheduler.core.sweep.state import Ints, Unfit
from scheduler.core.sweep.tree import Quotas
from scheduler.core.units import ProjectId, WorkloadId

_MOST_PRIORITY = 1 << 40
_STEP = 1 << 20
"""Between the names of two neighbours, so that others find room between them."""
_SPARE_CLASSES = 1 << 10
_SPARE_ROWS = 8
"""One more for so many, each time that there are too few: they are copied whenever they grow."""
_MANY = 8
"""Beyond one in so many new rows, it is quicker to sort all anew than to look for places."""


_SIGN = np.int64(-1 << 63)
"""Turned over, so that as bytes what is negative comes first."""

_id = attrgetter("id")
_OWN = attrgetter("project", "user", "array", "preemptible", "clusters", "topology")
"""What a class is one of, beside what its pod sets ask for."""
Objects = NDArray[np.object_]


class Class(NamedTuple):
    """Those of a project, submitter and array with one request. `project` is its number;
    `request`, in `samples`; `capped`, that they are of an array."""

    project: int
    request: int
    capped: bool
    of: Request


class Backlog:
    """The waiting workloads of one snapshot after another.

    `views[row]` is the workload of a row, None where nobody is; `ids[row]` its id. `queue` has the
    rows project after project, each in the order of its queue. `classes` are those met so far, and
    `members` counts who waits of each, `pods` those that one of it asks for, and `table` is
    `Queues.classes`; `samples` has a workload of each request. `quotas` and `asked` are what a
    sweep keeps here.
    """

    def __init__(
        self, *, flavors: Iterable[FlavorView], book: Book, timed: Collection[ProjectId] = ()
    ) -> None:
        self.views: Objects = np.empty(0, np.object_)
        self.ids: Objects = np.empty(0, np.object_)
        self.workloads: Ints = np.zeros((0, s.WORKLOAD_COLUMNS), np.int64)
        self.queue: Ints = np.zeros(0, np.int64)
        self.projects: dict[ProjectId, int] = {}
        self.samples: dict[Request, PendingView] = {}
        self.classes: list[Class] = []
        self.members: Ints = np.zeros(0, np.int64)
        self.pods: Ints = np.zeros(0, np.int64)
        self.table: Ints = np.zeros((0, s.CLASS_COLUMNS), np.int64)
        self._project_of: Ints = np.zeros(0, np.int64)
        self.quotas: Quotas | None = None
        self.asked: object = None
        by_id = {flavor.id: flavor for flavor in flavors}
        self._made = Requests(flavors=by_id, book=book, timed=timed)
        self._numbers: dict[Request, int] = {}
        self._timed = timed
        self._classes: dict[tuple[object, ...], int] = {}
        self._rows: dict[WorkloadId, int] = {}
        self._turns: dict[WorkloadId, str] = {}
        self._seated: Ints = np.zeros(0, np.int64)
        self._seatings = 0
        self._listed: dict[object, tuple[Ints, tuple[WorkloadId, ...]]] = {}
        self._free: list[int] = []
        self._keys = np.zeros(0, "S32")
        self._names = _Names()
        self._later: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_stale(self) -> bool:
        """Whether it knows of many more classes than there are."""
        return len(self.classes) > 2 * len(self._rows) + _SPARE_CLASSES

    def change(self, *, gone: Sequence[PendingView], come: Sequence[PendingView]) -> None:
        """Those have gone that were there, and others have come. Raises Unfit, and is of no
        further use then."""
        try:
            if gone:
                self._leave(gone)
            if come:
                self._join(come)
        except OverflowError as error:
            raise Unfit("a number has more than 63 bits") from error

    def request_of(self, pending: PendingView) -> Request:
        """Its class."""
        of = int(self.workloads[self._rows[pending.id], s.CLASS])
        return self.classes[of].of

    def doubtful(self, closed: Collection[ProjectId]) -> list[PendingView]:
        """All that may have to wait whatever there is room for: of projects that are closed, and
        who has something to wait for."""
        rows = self._later
        if closed:
            shut = [number for project, number in self.projects.items() if project in closed]
            of_closed = np.isin(self.workloads[self.queue, s.PROJECT], shut)
            rows = rows | set(self.queue[of_closed].tolist())
        return [self.view(row) for row in rows]

    def sizes(self) -> Ints:
        """How many wait of each project."""
        made = np.zeros(len(self.projects), np.int64)
        np.add.at(made, self._project_of, self.members)
        return made

    def rows_of(self, ids: Iterable[WorkloadId]) -> list[int]:
        """Of those that wait."""
        return [self._rows[id] for id in ids]

    def listed[K](self, rows: Mapping[K, Ints]) -> Iterator[tuple[K, tuple[WorkloadId, ...]]]:
        """The ids in those rows, under each key: where they are the same as the last time, the
        tuple that was made then, for to see that costs less than to list thousands."""
        known, self._listed = self._listed, {}
        for key, of in rows.items():
            seated, made = self._seated[of], known.get(key)
            if made is None or not np.array_equal(made[0], seated):
                made = seated, tuple(self.ids[of].tolist())
            self._listed[key] = made
            yield key, made[1]

    def _leave(self, gone: Sequence[PendingView]) -> None:
        rows = [self._rows.pop(view.id) for view in gone]
        for view in gone:
            self._turns.pop(view.id, None)
        stays = np.ones(len(self.views), np.bool_)  # small, so that to look there costs little
        stays[rows] = False
        self.queue = self.queue[stays[self.queue]]
        self._count(self.workloads[rows, s.CLASS], -1)
        self._later.difference_update(rows)
        self.views[rows] = self.ids[rows] = None
        self._free += rows

    def _join(self, come: Sequence[PendingView]) -> None:
        table = np.zeros((len(come), s.WORKLOAD_COLUMNS), np.int64)
        table[:, s.PRIORITY] = [view.priority for view in come]
        table[:, s.SUBMITTED] = [view.submitted_at for view in come]
        table[:, s.TURN] = table[:, s.SUBMITTED]
        limits = [view.run_time_limit_s or s.UNLIMITED for view in come]
        table[:, s.LIMIT_S] = np.minimum(limits, s.UNLIMITED)
        for nth, view in enumerate(come):
            if view.turn is not None:
                table[nth, s.TURN], self._turns[view.id] = turn(view)
        priorities = table[:, s.PRIORITY]
        if max(int(priorities.max()), -int(priorities.min())) >= _MOST_PRIORITY:
            raise Unfit("a priority is too large")
        classes = self._classes_of(come)
        table[:, s.CLASS] = classes
        table[:, s.PROJECT] = [self.classes[of].project for of in classes]
        rows = self._seats(come)
        self.workloads[rows] = table
        self._name(come, rows)
        self._later.update(
            row
            for row, view in zip(rows, come, strict=True)
            if view.not_before or view.waits_for or view.gate or view.gathering or view.strays
        )
        self._count(table[:, s.CLASS], 1)
        self._line_up(rows)

    def _count(self, classes: Ints, each: int) -> None:
        self.members += each * np.bincount(classes, minlength=len(self.members))

    def _classes_of(self, come: Sequence[PendingView]) -> list[int]:
        found, timed, known = [], self._timed, self._classes
        for view in come:
            limit_s = view.run_time_limit_s if view.project in timed else None
            # Who is of one project and asks for the same is of one request.
            key = _OWN(view), limit_s, *map(SHAPE, view.pod_sets)
            number = known.get(key)
            if number is None:
                number = known[key] = len(self.classes)
                self.classes.append(self._class(view, self._made.of(view)))
            found.append(number)
        self._list_new_classes()
        return found

    def _list_new_classes(self) -> None:
        new = self.classes[len(self.members) :]
        if new:
            rows = np.zeros((len(new), s.CLASS_COLUMNS), np.int64)
            rows[:, s.REQUEST] = [of.request for of in new]
            rows[:, s.CAPPED] = [of.capped for of in new]
            self.table = np.concatenate((self.table, rows))
            pods = np.array([of.of.count for of in new], np.int64)
            self.pods = np.concatenate((self.pods, pods))
            projects = np.array([of.project for of in new], np.int64)
            self._project_of = np.concatenate((self._project_of, projects))
            self.members = np.concatenate((self.members, np.zeros_like(pods)))

    def _class(self, view: PendingView, request: Request) -> Class:
        project = self.projects.setdefault(view.project, len(self.projects))
        number = self._numbers.setdefault(request, len(self._numbers))
        self.samples.setdefault(request, view)
        return Class(project, number, view.array is not None, request)

    def _seats(self, come: Sequence[PendingView]) -> list[int]:
        """A row for each."""
        more = len(come) - len(self._free)
        if more > 0:
            first = len(self.views)
            more += (first + more) // _SPARE_ROWS
            self.views = np.concatenate((self.views, np.full(more, None)))
            self.ids = np.concatenate((self.ids, np.full(more, None)))
            added = np.zeros((more, s.WORKLOAD_COLUMNS), np.int64)
            self.workloads = np.concatenate((self.workloads, added))
            self._keys = np.concatenate((self._keys, np.zeros(more, "S32")))
            self._seated = np.concatenate((self._seated, np.zeros(more, np.int64)))
            self._free += range(first + more - 1, first - 1, -1)
        rows = self._free[: -len(come) - 1 : -1]
        del self._free[-len(come) :]
        self.views[rows] = np.fromiter(come, np.object_, len(come))
        self.ids[rows] = np.fromiter(map(_id, come), np.object_, len(come))
        self._seated[rows] = np.arange(self._seatings, self._seatings + len(come))
        self._seatings += len(come)  # no other has had the number, whoever had the row
        before = len(self._rows)
        self._rows.update(zip(map(_id, come), rows, strict=True))
        if len(self._rows) < before + len(come):
            raise Unfit("a workload is there twice")
        return rows

    def _name(self, come: Sequence[PendingView], rows: Sequence[int]) -> None:
        names = self._turns_of(list(map(_id, come)))
        if self._names.add(names, self._turns_of(self._rows)):
            names, rows = self._turns_of(self._rows), list(self._rows.values())
        self.workloads[rows, s.NAME] = list(map(self._names.of.__getitem__, names))
        self._keys[rows] = self._keys_of(rows)

    def _turns_of(self, ids: Collection[WorkloadId]) -> Collection[str]:
        """What their turns sort by: the ids of all who queue as what they are."""
        return [self._turns.get(id, id) for id in ids] if self._turns else ids

    def _line_up(self, rows: Sequence[int]) -> None:
        if len(rows) * _MANY > len(self.queue):
            everyone = np.concatenate((self.queue, np.array(rows, np.int64)))
            name, turn_at, priority, project = (
                self.workloads[everyone, column]
                for column in (s.NAME, s.TURN, s.PRIORITY, s.PROJECT)
            )
            self.queue = everyone[np.lexsort((name, turn_at, -priority, project))]
            return
        keys = self._keys.take(rows)
        order = np.argsort(keys)
        at = np.searchsorted(self._keys.take(self.queue), keys[order])
        self.queue = np.insert(self.queue, at, np.array(rows, np.int64)[order])

    def _keys_of(self, rows: Sequence[int]) -> NDArray[np.bytes_]:
        """What `queue` is sorted by, as bytes that sort alike."""
        table = self.workloads.take(rows, axis=0)
        table[:, s.PRIORITY] *= -1
        table ^= _SIGN
        keys = np.empty((len(table), 4), ">i8")
        for nth, column in enumerate((s.PROJECT, s.PRIORITY, s.TURN, s.NAME)):
            keys[:, nth] = table[:, column]
        return keys.view("S32")[:, 0]

    def view(self, row: int) -> PendingView:
        """Who waits in that row."""
        view: PendingView = self.views[row]
        return view


class _Names:
    """Numbers that sort as ids do. Who has left keeps its own, for it may come back, until all
    are given anew."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}
        self._sorted: list[str] = []

    def add(self, ids: Iterable[str], there: Collection[str]) -> bool:
        """Give these numbers, who are some of those that are `there` now; whether all of those had
        to be given new ones."""
        new = [id for id in ids if id not in self.of]
        few = len(new) * _MANY <= len(self._sorted) <= 2 * len(there)
        if few and all(map(self._squeeze_in, new)):
            return False
        self._sorted = sorted(there)
        self.of = {id: n * _STEP for n, id in enumerate(self._sorted)}
        return True

    def _squeeze_in(self, id: str) -> bool:
        """False when there is no number between its neighbours'."""
        at = bisect_left(self._sorted, id)
        before = self.of[self._sorted[at - 1]] if at else -_STEP
        if at == len(self._sorted):
            number = before + _STEP
        else:
            number = before + (self.of[self._sorted[at]] - before) // 2
            if number == before:
                return False
        self._sorted.insert(at, id)
        self.of[id] = number
        return True
