"""Start one workload, compiled: what `Admission.start` does."""

from scheduler.core.sweep import placing
from scheduler.core.sweep.charging import (
    charge,
    guarantor,
    has_quota,
    is_of_tier,
)
from scheduler.core.sweep.state import (
    ACCEPTED,
    ADMITTED,
    CHARGED,
    CLUSTERS,
    DECIDED,
    FIRST_PLACE,
    FULL,
    HOPE,
    MEMBER,
    OF_CLUSTER,
    OF_OPTION,
    OF_WORKLOAD,
    OPTIONS,
    OPTIONS_BEYOND,
    PLACED,
    PODS,
    PRIORITY,
    SETS,
    SETS_BEYOND,
    STATE,
    Flavors,
    Hardware,
    Log,
    State,
    Work,
    compiled,
)


@compiled
def _cheapest(f: Flavors, w: Work, log: Log, request: int, done: int) -> int:
    """Of the accepted clusters not in `done`, the one with least free of the flavors, or -1."""
    best = -1
    accepted = w.requests[request, CLUSTERS]
    for cluster in range(f.pool_of.shape[1]):
        left = accepted >> cluster & 1 and not done >> cluster & 1
        if left and (best < 0 or log.free[cluster] < log.free[best]):
            best = cluster
    return best


@compiled
def _measure(h: Hardware, f: Flavors, w: Work, log: Log, request: int, option: int) -> int:
    """Set what is free in each cluster; how many of them are accepted."""
    count = 0
    for cluster in range(f.pool_of.shape[1]):
        count += w.requests[request, CLUSTERS] >> cluster & 1
    if count < 2:
        return count
    first = w.options[option, ACCEPTED]
    sets = w.requests[request, SETS_BEYOND] - w.requests[request, SETS]
    for cluster in range(f.pool_of.shape[1]):
        log.free[cluster] = 0
        for nth in range(sets):
            flavor, twice = w.accepted[first + nth], False
            for other in range(nth):
                twice = twice or w.accepted[first + other] == flavor
            if not twice:
                log.free[cluster] += placing.free(h, f, flavor, cluster)
    return count


@compiled
def _place(
    h: Hardware, f: Flavors, w: Work, log: Log, workload: int, request: int, option: int
) -> int:
    """As `Admission._place`: the cluster, or -1."""
    mark, count = log.counts[PLACED], _measure(h, f, w, log, request, option)
    most, most_at, done = -1, 0, 0
    for _ in range(count):
        cluster = _cheapest(f, w, log, request, done)
        done |= 1 << cluster
        if not placing.gang(h, f, w, log, workload, request, option, cluster):
            continue
        placed = log.counts[PLACED] - mark
        if placed == w.requests[request, PODS] or count == 1:
            return cluster
        placing.undo(h, w, log, mark)
        if placed > most:
            most, most_at = placed, cluster
    if most < 0 or not placing.gang(h, f, w, log, workload, request, option, most_at):
        return -1
    return most_at


@compiled
def _may_use(s: State, option: int, workload: int, request: int, project: int, tier: int) -> bool:
    """Whether the option is of the tier, and there is quota for it."""
    _, f, t, q, w, log = s
    if tier > 0:
        by = guarantor(f, t, q, w, option, project, q.workloads[workload, PRIORITY])
        if not is_of_tier(t, q, project, by, tier):
            return False
    return bool(has_quota(f, t, w, log, request, option, q.projects[project, MEMBER]))


@compiled
def start(s: State, workload: int, request: int, project: int, tier: int) -> bool:
    """As `Admission.start`."""
    h, f, t, q, w, log = s
    member = q.projects[project, MEMBER]
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        if w.options[option, FULL]:
            continue
        if not _may_use(s, option, workload, request, project, tier):
            continue
        mark = log.counts[PLACED]
        cluster = _place(h, f, w, log, workload, request, option)
        if cluster < 0:
            w.options[option, FULL] = 1
            continue
        w.options[option, HOPE] = 1
        charge(f, t, log, member)
        for flavor in range(f.soon.shape[0]):
            f.soon[flavor, cluster] -= f.flavors[flavor, CHARGED]
        admit = log.counts[ADMITTED]
        log.admits[admit, OF_WORKLOAD], log.admits[admit, OF_CLUSTER] = workload, cluster
        log.admits[admit, FIRST_PLACE], log.admits[admit, OF_OPTION] = mark, option
        log.counts[ADMITTED] = admit + 1
        q.workloads[workload, STATE] = DECIDED
        return True
    return False


@compiled
def lacks_room(s: State, workload: int, request: int, project: int, tier: int) -> bool:
    """Of one that did not start: whether there is quota for an option of the tier."""
    for option in range(
        s.work.requests[request, OPTIONS], s.work.requests[request, OPTIONS_BEYOND]
    ):
        if _may_use(s, option, workload, request, project, tier):
            return True
    return False
