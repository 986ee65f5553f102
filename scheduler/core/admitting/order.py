"""Who is next: each project's queue has a head, and the heads are compared.

Within a project: priority, then turn: the submission as which it queues, then that one's id. Its
own, unless people have reordered the queue (ADR 0053). Between heads:
  1. higher priority
  2. lower share of what they borrow, then less use in the past: of the tenant, then of the
     department, then of the project
  3. earlier turn
Identical requests of one project, submitter and array queue behind each other: when one does not
fit, its like are closed with it and cost nothing more. Shares only grow while a plan admits, so
the stored key of a head is at most too good: it is checked when it comes up, and put back if it
was.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from typing import NamedTuple

from scheduler.core.quota.share import Shares
from scheduler.core.reasons import Reason
from scheduler.core.request import Request
from scheduler.core.snapshot import PendingView
from scheduler.core.submitted import ArrayView
from scheduler.core.units import ProjectId, UserId, WorkloadId

_InProject = tuple[int, int, str]
_Key = tuple[int, tuple[int, ...], int, str]

type Why = Callable[[PendingView, Request], Reason]
"""The reason to tell one that did not start, and all of its class."""


class Left(NamedTuple):
    """Those of one class who did not start: the first, all in the order of their queue, and what
    each asks for."""

    first: PendingView
    ids: tuple[WorkloadId, ...]
    request: Request


class _Like:
    """The workloads of one project, submitter and array with one request, the next one last."""

    __slots__ = ("request", "waiting")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.waiting: list[PendingView] = []


class Heads:
    """Hands out workloads, each once, until none is left that is not closed."""

    def __init__(
        self,
        *,
        pending: Sequence[PendingView],
        request_of: Callable[[PendingView], Request],
        shares: Shares,
    ) -> None:
        """`request_of` tells the class of each. `mixed` are the projects with work of several
        priorities."""
        self._shares = shares
        self._requests: dict[WorkloadId, Request] = {}
        likes: dict[tuple[ProjectId, UserId, ArrayView | None, Request], _Like] = {}
        for waiting in pending:
            request = self._requests[waiting.id] = request_of(waiting)
            key = waiting.project, waiting.user, waiting.array, request
            like = likes.get(key)
            if like is None:
                like = likes[key] = _Like(request)
            like.waiting.append(waiting)
        for like in likes.values():
            like.waiting.sort(key=place_in_queue, reverse=True)
        self._likes = [(key[0], like) for key, like in likes.items()]
        priorities: dict[ProjectId, set[int]] = {}
        for waiting in pending:
            priorities.setdefault(waiting.project, set()).add(waiting.priority)
        self.mixed = {project for project, found in priorities.items() if len(found) > 1}
        self._closed: list[tuple[_Like, PendingView]] = []
        self._current: tuple[ProjectId, _Like, PendingView] | None = None
        self._fill()

    def next(self) -> PendingView | None:
        """The head that comes first now; None when all have been handed out or closed."""
        self._current = None
        while self._heap:
            stored, project = self._heap[0]
            queue = self._queues[project]
            if not queue:
                heappop(self._heap)
                continue
            like = queue[0][1]
            key = self._key(project, like)
            if key != stored:
                heapreplace(self._heap, (key, project))
                continue
            head = like.waiting.pop()
            if like.waiting:
                heapreplace(queue, (place_in_queue(like.waiting[-1]), like))
            else:
                heappop(queue)
            self._current = project, like, head
            return head
        return None

    def request_of(self, pending: PendingView) -> Request:
        """The class of a workload that has been handed out, or waits."""
        return self._requests[pending.id]

    def first_since(self, since: int) -> PendingView | None:
        """Of the workload handed out last and its like, the first that was submitted by then."""
        if self._current is None:
            return None
        _, like, head = self._current
        waiting = chain((head,), reversed(like.waiting))
        return next((each for each in waiting if each.submitted_at <= since), None)

    def close(self) -> None:
        """The workload handed out last did not start: neither will its like.

        All of them come up again after `reopen`.
        """
        if self._current is None:
            return
        project, like, head = self._current
        self._closed.append((like, head))
        if like.waiting:
            queue = self._queues[project]
            queue[:] = [item for item in queue if item[1] is not like]
            heapify(queue)

    def left(self) -> Iterator[Left]:
        """Who did not start in this round: each class that was closed, in that order."""
        for like, head in self._closed:
            ids = head.id, *[waiting.id for waiting in reversed(like.waiting)]
            yield Left(head, ids, self._requests[head.id])

    def behind(self) -> tuple[WorkloadId, ...]:
        """All who were not handed out, nor is anyone like them, by id."""
        closed = {id(like) for like, _ in self._closed}
        rest = [p.id for _, like in self._likes if id(like) not in closed for p in like.waiting]
        return tuple(sorted(rest))

    def told(self, why: Why) -> Iterator[tuple[Reason, tuple[WorkloadId, ...]]]:
        """Each reason for which classes did not start, and who; both in the order of `left`."""
        found: dict[Reason, list[WorkloadId]] = {}
        for first, ids, request in self.left():
            found.setdefault(why(first, request), []).extend(ids)
        return ((reason, tuple(ids)) for reason, ids in found.items())

    def reopen(self) -> None:
        """Another round, over all that was closed."""
        for like, head in self._closed:
            like.waiting.append(head)
        self._closed.clear()
        self._likes = [(project, like) for project, like in self._likes if like.waiting]
        self._fill()

    def _fill(self) -> None:
        self._queues: dict[ProjectId, list[tuple[_InProject, _Like]]] = {}
        for project, like in self._likes:
            queue = self._queues.setdefault(project, [])
            heappush(queue, (place_in_queue(like.waiting[-1]), like))
        self._heap = [(self._key(p, queue[0][1]), p) for p, queue in self._queues.items()]
        heapify(self._heap)

    def _key(self, project: ProjectId, like: _Like) -> _Key:
        head = like.waiting[-1]
        return -head.priority, self._shares.rank(project=project), *turn(head)


def place_in_queue(pending: PendingView) -> _InProject:
    """The sort key of a workload in its project's queue."""
    return -pending.priority, *turn(pending)


def turn(pending: PendingView) -> tuple[int, str]:
    """When the submission was as which it queues, and what sorts as the id of that one. Of two in
    the same turn, which only a snapshot at fault has, it is the own id that decides."""
    if pending.turn is None:
        return pending.submitted_at, pending.id
    return pending.turn.submitted_at, f"{pending.turn.of}\0{pending.id}"
