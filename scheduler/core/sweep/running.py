"""Head after head, compiled: what `order` and `cycle` do. The entries of the compiled code.

numba keeps an entry on disk as long as this file stays as it is. So PARTS has the check sum of the
files that the entries are made of; a test says what it has to be.
"""

from typing import Final

from scheduler.core.sweep import placing
from scheduler.core.sweep.charging import (
    claim,
    has_quota,
    lack_alike,
    member_of,
    share,
)
from scheduler.core.sweep.evicting import may_evict
from scheduler.core.sweep.guarding import keep_quota
from scheduler.core.sweep.starting import lacks_room, start
from scheduler.core.sweep.state import (
    ADMITTED,
    BY_HAND,
    CAPPED,
    CLASS,
    CLOSED,
    COMPARED,
    FIRM,
    GUARDED,
    HARD,
    HARDWARE_TYPE,
    HEADS,
    INT_TYPE,
    LEFT,
    LIKE,
    LISTED,
    MIXED,
    NAME,
    NEXT,
    OLDEST,
    OPTIONS,
    OPTIONS_BEYOND,
    PAST,
    PRIORITY,
    PROJECT,
    QUEUE,
    QUEUE_BEYOND,
    REQUEST,
    SHUT,
    STATE_TYPE,
    SUBMITTED,
    TOLD,
    TURN,
    UNKNOWN,
    UNLIKE,
    WAITED_SINCE,
    WAITING,
    Hardware,
    Log,
    Queues,
    State,
    compiled,
    entry,
)

PARTS: Final = "62d9dc1e8b00f6ae"

DONE: Final = -1
"""The answer of `run` when nothing is left; else it is the workload to be decided by hand."""

_LOOKS: Final = 8
"""So many reasons of a request are compared before it is asked for another."""


@compiled
def _beyond(q: Queues, at: int, last: int) -> int:
    """Where in the queue, up to its end at `last`, the next of another class comes. Looked for
    once: each round comes by again."""
    if not q.beyond[at]:
        of, beyond = q.class_at[at], at + 1
        while beyond < last and q.class_at[beyond] == of:
            beyond += 1
        q.beyond[at] = beyond
    return int(q.beyond[at])


@compiled
def _head(q: Queues, project: int) -> int:
    """The next workload of its queue, or -1."""
    at, beyond = q.projects[project, NEXT], q.projects[project, QUEUE_BEYOND]
    while at < beyond:
        if q.classes[q.class_at[at], CLOSED]:
            at = _beyond(q, at, beyond)
            continue
        if q.states[q.queue[at]] == WAITING:
            break
        at += 1
    q.projects[project, NEXT] = at
    return int(q.queue[at]) if at < beyond else -1


@compiled
def _first_since(q: Queues, workload: int, since: int) -> int:
    """As `Heads.first_since`, of the head of a queue; or -1."""
    if q.workloads[workload, SUBMITTED] <= since:
        return workload
    of, project = q.workloads[workload, CLASS], q.workloads[workload, PROJECT]
    if q.classes[of, OLDEST] <= since:
        for at in range(q.projects[project, NEXT], q.projects[project, QUEUE_BEYOND]):
            other = q.queue[at]
            waits = q.class_at[at] == of and q.states[other] == WAITING
            if waits and q.workloads[other, SUBMITTED] <= since:
                return int(other)
    return -1


@compiled
def _set_key(s: State, project: int, workload: int) -> bool:
    """Work out the key of the project's head; whether it is another than before."""
    q = s.queues
    key, levels, changed = q.keys[project], q.levels.shape[1], False
    key[0], changed = -q.workloads[workload, PRIORITY], key[0] != -q.workloads[workload, PRIORITY]
    for level in range(levels):
        member = q.levels[project, level, COMPARED]
        term = share(s.flavors, s.tree, member) if member >= 0 else UNKNOWN
        changed = changed or key[1 + 2 * level] != term
        key[1 + 2 * level], key[2 + 2 * level] = term, q.levels[project, level, PAST]
    last = 1 + 2 * levels
    changed = changed or key[last + 1] != q.workloads[workload, NAME]
    key[last], key[last + 1] = q.workloads[workload, TURN], q.workloads[workload, NAME]
    return bool(changed)


@compiled
def _before(q: Queues, a: int, b: int) -> bool:
    for k in range(q.keys.shape[1]):
        if q.keys[a, k] != q.keys[b, k]:
            return bool(q.keys[a, k] < q.keys[b, k])
    return False


@compiled
def _sink(q: Queues, at: int, size: int) -> None:
    heap = q.heap
    project = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(q, heap[child + 1], heap[child]):
            child += 1
        if not _before(q, heap[child], project):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = project


@compiled
def _close(q: Queues, log: Log, workload: int) -> None:
    of = q.workloads[workload, CLASS]
    q.classes[of, CLOSED] = 1
    q.shut[log.counts[SHUT]] = of
    log.counts[SHUT] += 1


@compiled
def _has_quota(s: State, request: int, workload: int) -> bool:
    """Whether the workload has enough of it for each option."""
    _, f, t, q, w, log = s
    member = member_of(q, workload)
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        if not has_quota(f, t, q, w, log, request, option, member, workload):
            return False
    return True


@compiled
def _first(q: Queues, of: int) -> int:
    """The first of a class of whom some are listed."""
    return int(q.left[q.classes[of, LISTED] - q.classes[of, LEFT]])


@compiled
def _is_like(s: State, request: int, of: int, other: int) -> bool:
    """Whether two classes of the request lack the same quota."""
    q = s.queues
    return lack_alike(s.tree, q, s.work, s.log, request, _first(q, of), _first(q, other))


@entry(HARDWARE_TYPE)
def fill(h: Hardware) -> None:
    """Put all nodes into their pools, which are empty; the entries of each are left unsorted."""
    placing.fill(h)


@entry(HARDWARE_TYPE, INT_TYPE)
def refresh(h: Hardware, node: int) -> None:
    """The node has changed."""
    placing.refresh(h, node)


@entry(STATE_TYPE)
def leave(s: State) -> int:
    """List in `left` who did not start, and say how many: class after class as they were closed,
    then who is of another, in the order of their queues."""
    q, at = s.queues, 0
    q.classes[:, LEFT] = 0
    for workload in q.queue:
        if q.states[workload] == WAITING:
            q.classes[q.workloads[workload, CLASS], LEFT] += 1
    for nth in range(s.log.counts[SHUT]):
        of = q.shut[nth]
        q.classes[of, LISTED] = at
        at += q.classes[of, LEFT]
    for workload in q.queue:
        of = q.workloads[workload, CLASS]
        if q.states[workload] != WAITING:
            continue
        if q.classes[of, CLOSED]:
            q.left[q.classes[of, LISTED]] = workload
            q.classes[of, LISTED] += 1
        else:
            q.left[at] = workload
            at += 1
    return at


@entry(STATE_TYPE)
def compare(s: State) -> None:
    """Once they are listed: set LIKE of the closed classes. Looks at the last few of a request
    alone: who is asked about though another had the same reason gets that again."""
    q, w = s.queues, s.work
    for nth in range(s.log.counts[SHUT]):
        w.requests[q.classes[q.shut[nth], REQUEST], TOLD] = UNKNOWN
    for nth in range(s.log.counts[SHUT]):
        of = q.shut[nth]
        q.classes[of, LIKE] = of
        request, first = q.classes[of, REQUEST], _first(q, of)
        own = q.projects[q.workloads[first, PROJECT], BY_HAND] or q.classes[of, CAPPED]
        if w.requests[request, FIRM] and not own:
            own = not _has_quota(s, request, first)
        if own:  # something beside the numbers of a quota may keep it from an option
            continue
        like, looks = w.requests[request, TOLD], 0
        while like >= 0 and looks < _LOOKS and not _is_like(s, request, of, like):
            like, looks = q.classes[like, UNLIKE], looks + 1
        if like >= 0 and looks < _LOOKS:
            q.classes[of, LIKE] = like
        else:
            q.classes[of, UNLIKE], w.requests[request, TOLD] = w.requests[request, TOLD], of


@entry(STATE_TYPE)
def reopen(s: State) -> None:
    """Begin a round: all that waits is in the queues."""
    q, counts = s.queues, s.log.counts
    q.classes[:, CLOSED] = 0
    counts[HEADS] = counts[SHUT] = 0
    for project in range(q.levels.shape[0]):
        q.projects[project, NEXT] = q.projects[project, QUEUE]
        head = _head(q, project)
        if head >= 0:
            _set_key(s, project, head)
            q.heap[counts[HEADS]] = project
            counts[HEADS] += 1
    for at in range(counts[HEADS] // 2 - 1, -1, -1):
        _sink(q, at, counts[HEADS])


@entry(STATE_TYPE, INT_TYPE)
def close(s: State, workload: int) -> None:
    """The workload did not start: neither will its like in this round."""
    _close(s.queues, s.log, workload)


@entry(STATE_TYPE, INT_TYPE, INT_TYPE)
def first_since(s: State, workload: int, since: int) -> int:
    """As `Heads.first_since`, of the workload handed out last; or -1."""
    return _first_since(s.queues, workload, since)


@entry(STATE_TYPE, INT_TYPE, INT_TYPE)
def run(s: State, tier: int, most_admits: int) -> int:
    """Decide head after head, up to so many admissions in all. Only with options of that tier, or
    of one before it."""
    f, t, q, w, log = s.flavors, s.tree, s.queues, s.work, s.log
    while log.counts[HEADS] > 0 and log.counts[ADMITTED] < most_admits:
        project = q.heap[0]
        workload = _head(q, project)
        if workload < 0:
            log.counts[HEADS] -= 1
            if log.counts[HEADS]:
                q.heap[0] = q.heap[log.counts[HEADS]]
                _sink(q, 0, log.counts[HEADS])
            continue
        if _set_key(s, project, workload):
            _sink(q, 0, log.counts[HEADS])
            continue
        of = q.workloads[workload, CLASS]
        request = q.classes[of, REQUEST]
        if w.requests[request, HARD] or q.projects[project, BY_HAND] or q.classes[of, CAPPED]:
            return workload
        if start(s, workload, request, project, tier):
            continue
        priority = q.workloads[workload, PRIORITY]
        if may_evict(f, t, q, w, log, workload, request, project, tier):
            return workload
        waits_long = q.workloads[workload, SUBMITTED] <= log.counts[WAITED_SINCE]
        if waits_long and lacks_room(s, workload, request, project, tier):
            return workload  # which may be kept for it
        guarded = _first_since(q, workload, log.counts[GUARDED])
        if guarded >= 0 and not keep_quota(f, t, q, w, log, guarded, request, project, tier):
            return workload
        claims = tier > 0 and q.projects[project, MIXED]
        if claims and not claim(f, t, q, w, request, project, priority):
            return workload
        _close(q, log, workload)
    return DONE
