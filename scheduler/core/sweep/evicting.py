"""Whether evictions might help, compiled: a quick no as `preempt` has it, so that those alone are
decided by hand for whom victims may be found."""

from typing import Final

from scheduler.core.sweep.charging import (
    available,
    guarantor,
    is_kept,
    is_of_tier,
    nearest,
    promised,
)
from scheduler.core.sweep.state import (
    CAN_EVICT,
    CAPACITY,
    CLUSTERS,
    COMING,
    EVICTABLE,
    EVICTABLE_BEYOND,
    FLAVOR_KIND,
    GIVERS,
    HOLDERS,
    KEPT,
    LASTING,
    MEMBER,
    MODEL,
    NEEDS,
    NEEDS_BEYOND,
    NOBODY,
    OF_MODEL,
    OF_PRIORITY,
    OPTIONS,
    OPTIONS_BEYOND,
    PARENT,
    PODS_OR_DEVICES,
    PRIORITY,
    PROMISED,
    PROMISES,
    QUOTED,
    STUCK,
    UNKNOWN,
    USED,
    WHOLE,
    Flavors,
    Log,
    Queues,
    Tree,
    Work,
    compiled,
)
from scheduler.core.units import ONE_MILLI

ANY_MODEL: Final = -1
MANY: Final = 1 << 40


@compiled
def may_evict(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, workload: int, request: int, project: int,
    tier: int,
) -> bool:  # fmt: skip
    """Whether evictions, or what is on its way back, might help: then it is decided by hand."""
    if not (log.counts[CAN_EVICT] or log.counts[COMING]):
        return False
    priority = q.workloads[workload, PRIORITY]
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        by = guarantor(f, t, q, w, option, project, priority)
        if not is_of_tier(t, q, project, by, tier):
            continue
        if is_kept(t, q, w, log, option, q.projects[project, MEMBER], workload):
            continue
        soon = _are_enough(f, q, w, request, option, project, NOBODY, 0)
        soon = soon and _quota_will_do(t, w, log, option, q.projects[project, MEMBER])
        if soon and log.counts[COMING] and not w.options[option, STUCK]:
            return True
        if not log.counts[CAN_EVICT]:
            continue
        own = _has_own(q, project, priority, ANY_MODEL)
        if own and _are_enough(f, q, w, request, option, project, priority, 0):
            return True
        if _gives_way(f, q, w, option, project, priority):
            by = q.projects[project, MEMBER]
        elif by and log.counts[PROMISES]:  # as `Eligible` has it
            later = nearest(t, w, PROMISED, KEPT, CAPACITY, option, q.projects[project, MEMBER])
            by = min(by, later)
        given = _given(t, w, log, option, by) if by else 0
        if given and _are_enough(f, q, w, request, option, project, priority, given):
            return True
        if by and soon:  # where others are over but now a search is made for nothing, and counted
            return True
    return False


@compiled
def _has_own(q: Queues, project: int, priority: int, model: int) -> bool:
    """Whether the project has work of lower priority, with something of the model, that may be
    evicted."""
    for n in range(q.projects[project, EVICTABLE], q.projects[project, EVICTABLE_BEYOND]):
        is_of = model in (ANY_MODEL, q.evictable[n, OF_MODEL])
        if is_of and q.evictable[n, OF_PRIORITY] < priority:
            return True
    return False


@compiled
def _gives_way(f: Flavors, q: Queues, w: Work, option: int, project: int, priority: int) -> bool:
    """Whether own work, were it gone, might bring it within a guarantee that is nearer."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        if _has_own(q, project, priority, f.flavors[w.needs[need, 0], MODEL]):
            return True
    return False


@compiled
def _are_enough(
    f: Flavors, q: Queues, w: Work, request: int, option: int, project: int, priority: int,
    given: int,
) -> bool:  # fmt: skip
    """As `enough.are_enough`, with the project's own work below that priority gone, and so many
    devices of others."""
    first, beyond = q.projects[project, EVICTABLE], q.projects[project, EVICTABLE_BEYOND]
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        if f.flavors[flavor, FLAVOR_KIND] != WHOLE:
            continue
        free = 0
        for cluster in range(f.soon.shape[1]):
            if w.requests[request, CLUSTERS] >> cluster & 1:
                free = max(free, f.soon[flavor, cluster])
        lacking = w.needs[need, 1] - free - given * ONE_MILLI
        for n in range(first, beyond):
            is_of = q.evictable[n, OF_MODEL] == f.flavors[flavor, MODEL]
            if is_of and q.evictable[n, OF_PRIORITY] < priority:
                lacking -= q.evictable[n, PODS_OR_DEVICES] * ONE_MILLI
        if lacking > 0:
            return False
    return True


@compiled
def _quota_will_do(t: Tree, w: Work, log: Log, option: int, member: int) -> bool:
    """As `preempt` asks who evicts nobody: of the quota once all that leaves is back, and what is
    promised is taken."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, asked = w.needs[need, 0], w.needs[need, 1]
        if not t.ledgers[QUOTED, flavor, member]:
            return False
        if log.counts[PROMISES]:
            left = promised(t, flavor, member)
        else:
            left = available(t, LASTING, flavor, member)
        if left < asked:
            return False
    return True


@compiled
def _given(t: Tree, w: Work, log: Log, option: int, by: int) -> int:
    """As `Candidates.borrowers` has it with all that is promised: what they hold of the model, 0
    when there are none. MANY of an option that needs several flavors: who gives more than one of
    them is counted for each."""
    first, beyond = w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]
    for need in range(first, beyond):
        flavor, given = w.needs[need, 0], 0
        if not w.needs[need, 1]:
            continue
        if t.ledgers[GIVERS, flavor, 0] == UNKNOWN:
            _count_givers(t, log, flavor)
        below, above = by, t.members[by, PARENT]
        while above >= 0:
            own = _giving(t, flavor, below) if _is_over(t, log, flavor, below) else 0
            given += _giving(t, flavor, above) - own
            below, above = above, t.members[above, PARENT]
        if given:
            return int(given) if beyond == first + 1 else MANY
    return 0


@compiled
def _count_givers(t: Tree, log: Log, flavor: int) -> None:
    """Set GIVERS of all members. A parent has a lower number than its children."""
    t.ledgers[GIVERS, flavor, :] = 0
    for member in range(t.members.shape[0] - 1, 0, -1):
        if _is_over(t, log, flavor, member):
            parent = t.members[member, PARENT]
            t.ledgers[GIVERS, flavor, parent] += _giving(t, flavor, member)


@compiled
def _giving(t: Tree, flavor: int, member: int) -> int:
    """What is given to who is beside the member, were it over."""
    return int(t.ledgers[HOLDERS, flavor, member] + t.ledgers[GIVERS, flavor, member])


@compiled
def _is_over(t: Tree, log: Log, flavor: int, member: int) -> bool:
    used = PROMISED if log.counts[PROMISES] else USED
    return bool(t.ledgers[used, flavor, member] > t.ledgers[CAPACITY, flavor, member])
