"""Who is next: each project's queue has a head, and the heads are compared.

Within a project: priority, then submission, then id. Between heads:
  1. heads that stay within their project's nominal quota before heads that would borrow: what is
     guaranteed is never kept waiting by what is lent, whatever the priorities (as in Kueue); without
     this, a borrower of high priority and an owner who reclaims would evict each other for ever
  2. higher priority
  3. lower share of the tenant, then of the project, of what they borrow
  4. earlier submission, then id
Shares only grow while a plan admits, so a head's stored key is at most too good: it is checked when
it comes up, and put back if it was.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heapreplace

from scheduler.core.share import Shares
from scheduler.core.snapshot import PendingView
from scheduler.core.units import ProjectId

_Key = tuple[bool, int, int, int, int, str]


class Heads:
    """Hands out the next workload until none is left."""

    def __init__(
        self,
        *,
        pending: Iterable[PendingView],
        shares: Shares,
        borrows: Callable[[PendingView], bool],
    ) -> None:
        """`borrows` says whether a workload would take its project beyond nominal, as of now."""
        self._shares = shares
        self._borrows = borrows
        self._queues: dict[ProjectId, list[PendingView]] = {}
        for waiting in pending:
            self._queues.setdefault(waiting.project, []).append(waiting)
        for queue in self._queues.values():
            queue.sort(key=lambda w: (-w.priority, w.submitted_at, w.id), reverse=True)
        self._heap = [(self._key(queue[-1]), project) for project, queue in self._queues.items()]
        heapify(self._heap)

    def next(self) -> PendingView | None:
        """The head that comes first now; None when all have been handed out."""
        while self._heap:
            stored, project = self._heap[0]
            queue = self._queues[project]
            if not queue:
                heappop(self._heap)
                continue
            key = self._key(queue[-1])
            if key == stored:
                return queue.pop()
            heapreplace(self._heap, (key, project))
        return None

    def _key(self, head: PendingView) -> _Key:
        tenant, own = self._shares.of(project=head.project)
        return self._borrows(head), -head.priority, tenant, own, head.submitted_at, head.id
