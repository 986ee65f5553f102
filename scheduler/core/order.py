"""Who is next: each project's queue has a head, and the heads are compared.

Within a project: priority, then submission, then id. Between heads:
  1. heads that stay within their project's nominal quota (once what gives way to them is gone)
     before heads that would borrow: what is guaranteed is not kept waiting by what is lent,
     whatever the priorities, as in Kueue; else a borrower of high priority and an owner who
     reclaims would evict each other for ever
  2. higher priority
  3. lower share of the tenant, then of the project, of what they borrow
  4. earlier submission, then id
Identical requests of one project queue behind each other: when one does not fit, its like are
closed with it and cost nothing more. Shares only grow while a plan admits, so the stored key of a
head is at most too good: it is checked when it comes up, and put back if it was.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace

from scheduler.core.request import Request
from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ProjectId, WorkloadId

Borrows = Callable[[ProjectId, Request, int], bool]
"""Whether a request of a priority would take the project beyond nominal, as of now."""

_InProject = tuple[int, int, str]
_Key = tuple[bool, int, int, int, int, str]


class _Like:
    """The workloads of one project with one request, the next one last."""

    __slots__ = ("request", "waiting")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.waiting: list[PendingView] = []


class Heads:
    """Hands out workloads, each once, until none is left that is not closed."""

    def __init__(
        self,
        *,
        pending: Iterable[PendingView],
        requests: Mapping[WorkloadId, Request],
        shares: Shares,
        borrows: Borrows,
    ) -> None:
        self._shares = shares
        self._borrows = borrows
        likes: dict[tuple[ProjectId, Request], _Like] = {}
        for waiting in pending:
            request = requests[waiting.id]
            like = likes.get((waiting.project, request))
            if like is None:
                like = likes[waiting.project, request] = _Like(request)
            like.waiting.append(waiting)
        for like in likes.values():
            like.waiting.sort(key=place_in_queue, reverse=True)
        self._likes = [(project, like) for (project, _), like in likes.items()]
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

    def close(self) -> list[PendingView]:
        """The workload handed out last did not start: neither will its like, which are returned.

        They come up again after `reopen`, in order.
        """
        if self._current is None:
            return []
        project, like, head = self._current
        self._closed.append((like, head))
        if not like.waiting:
            return []
        queue = self._queues[project]
        queue[:] = [item for item in queue if item[1] is not like]
        heapify(queue)
        return like.waiting[::-1]

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
        tenant, own = self._shares.of(project=project)
        borrows = self._borrows(project, like.request, head.priority)
        return borrows, -head.priority, tenant, own, head.submitted_at, head.id


def place_in_queue(pending: PendingView) -> _InProject:
    """The sort key of a workload in its project's queue."""
    return -pending.priority, pending.submitted_at, pending.id
