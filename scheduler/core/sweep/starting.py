"""Start one workload, compiled: what `Admission.start` does."""

from scheduler.core.sweep import placing
from scheduler.core.sweep.charging import (
    charge,
    guarantor,
    has_quota,
    is_of_tier,
    narrow,
)
from scheduler.core.sweep.state import (
    ACCEPTED,
    ADMITTED,
    CHARGED,
    CLUSTERS,
    COUNT,
    DECIDED,
    FIRST_PLACE,
    FREE,
    FULL,
    HOPE,
    LEAST,
    MEMBER,
    NO_QUOTA,
    NO_ROOM,
    NOT_GUARANTEED,
    OF_CLUSTER,
    OF_OPTION,
    OF_WORKLOAD,
    OFFERED,
    OPTIONS,
    OPTIONS_BEYOND,
    PLACED,
    PODS,
    PODS_THERE,
    PRIORITY,
    SETS,
    SETS_BEYOND,
    UNKNOWN,
    Flavors,
    Hardware,
    Log,
    Queues,
    State,
    Tree,
    Work,
    compiled,
)


@compiled
def _comes_before(w: Work, log: Log, option: int, a: int, b: int) -> bool:
    """Whether cluster a is asked before b, of a lower number: as `place.cheapest_first`."""
    dear, than = w.dearness[option, a], w.dearness[option, b]
    return bool(dear < than or (dear == than and log.free[a] < log.free[b]))


@compiled
def _next(f: Flavors, w: Work, log: Log, request: int, option: int, done: int) -> int:
    """Of the accepted clusters not in `done`, the one that is asked first, or -1."""
    best = -1
    accepted = w.requests[request, CLUSTERS]
    for cluster in range(f.pool_of.shape[1]):
        left = accepted >> cluster & 1 and not done >> cluster & 1
        if left and (best < 0 or _comes_before(w, log, option, cluster, best)):
            best = cluster
    return best


@compiled
def _measure(h: Hardware, f: Flavors, w: Work, log: Log, request: int, option: int) -> int:
    """Set what is free in each cluster; how many of them are accepted."""
    count = 0
    for cluster in range(f.pool_of.shape[1]):
        count += w.requests[request, CLUSTERS] >> cluster & 1
    if count < 2 and not log.counts[OFFERED]:
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
        _offer(log, cluster, FREE, log.free[cluster])
        _offer(log, cluster, PODS_THERE, UNKNOWN)
    return count


@compiled
def _offer(log: Log, cluster: int, column: int, value: int) -> None:
    """Note it of the next admission, should it come to that."""
    if log.counts[OFFERED]:
        log.offers[log.counts[ADMITTED], cluster, column] = value


@compiled
def _place(
    h: Hardware, f: Flavors, w: Work, log: Log, workload: int, request: int, option: int
) -> int:
    """As `Admission._place`: the cluster, or -1."""
    mark, count = log.counts[PLACED], _measure(h, f, w, log, request, option)
    most, most_at, done = -1, 0, 0
    for _ in range(count):
        cluster = _next(f, w, log, request, option, done)
        done |= 1 << cluster
        fits = placing.gang(h, f, w, log, workload, request, option, cluster)
        placed = log.counts[PLACED] - mark
        _offer(log, cluster, PODS_THERE, placed)
        if not fits:
            continue
        if placed == w.requests[request, PODS] or count == 1:
            return cluster
        placing.undo(h, w, log, mark)
        if placed > most:
            most, most_at = placed, cluster
    if most < 0 or not placing.gang(h, f, w, log, workload, request, option, most_at):
        return -1
    return most_at


@compiled
def _is_of_tier(
    f: Flavors, t: Tree, q: Queues, w: Work, option: int, workload: int, project: int, tier: int
) -> bool:
    if tier <= 0:
        return True
    by = guarantor(f, t, q, w, option, project, q.workloads[workload, PRIORITY])
    return bool(is_of_tier(t, q, project, by, tier))


@compiled
def _why_left_out(s: State, option: int, workload: int, project: int, tier: int) -> int:
    """Why the option is none of the round, UNKNOWN if it is: as `Admission._in_turn`."""
    _, f, t, q, w, _ = s
    if w.options[option, FULL]:
        return NO_ROOM
    return UNKNOWN if _is_of_tier(f, t, q, w, option, workload, project, tier) else NOT_GUARANTEED


@compiled
def _is_elastic(w: Work, request: int) -> bool:
    for row in range(w.requests[request, SETS], w.requests[request, SETS_BEYOND]):
        if w.sets[row, COUNT] > w.sets[row, LEAST]:
            return True
    return False


@compiled
def start(s: State, workload: int, request: int, project: int, tier: int) -> bool:
    """As `Admission.start`."""
    h, f, t, q, w, log = s
    member, admit = q.projects[project, MEMBER], log.counts[ADMITTED]
    first, beyond = w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]
    for option in range(first, beyond):
        mark, why = log.counts[PLACED], _why_left_out(s, option, workload, project, tier)
        if why == UNKNOWN and not has_quota(f, t, q, w, log, request, option, member, workload):
            why = NO_QUOTA
        cluster = -1
        if why == UNKNOWN:
            if _is_elastic(w, request):
                narrow(f, t, q, w, option, project, q.workloads[workload, PRIORITY])
            cluster = _place(h, f, w, log, workload, request, option)
            why = NO_ROOM
        if cluster < 0:
            if why == NO_ROOM:
                w.options[option, FULL] = 1
            if beyond > first + 1:
                log.passed[admit, option - first] = why
            continue
        for other in range(option + 1, beyond):
            log.passed[admit, other - first] = _why_left_out(s, other, workload, project, tier)
        w.options[option, HOPE] = 1
        charge(f, t, log, member)
        for flavor in range(f.soon.shape[0]):
            f.soon[flavor, cluster] -= f.flavors[flavor, CHARGED]
        log.admits[admit, OF_WORKLOAD], log.admits[admit, OF_CLUSTER] = workload, cluster
        log.admits[admit, FIRST_PLACE], log.admits[admit, OF_OPTION] = mark, option
        log.counts[ADMITTED] = admit + 1
        q.states[workload] = DECIDED
        return True
    return False


@compiled
def lacks_room(s: State, workload: int, request: int, project: int, tier: int) -> bool:
    """Of one that did not start: whether there is quota for an option of the tier."""
    _, f, t, q, w, log = s
    member = q.projects[project, MEMBER]
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        of_tier = _is_of_tier(f, t, q, w, option, workload, project, tier)
        if of_tier and has_quota(f, t, q, w, log, request, option, member, workload):
            return True
    return False
