"""Who may use how much, compiled: what `quota`, `share` and `admission` ask."""

from scheduler.core.share import SCALE, WITHOUT_WEIGHT
from scheduler.core.sweep.state import (
    ACCEPTED,
    ANY,
    CAN_EVICT,
    CAPACITY,
    CEILING,
    CHARGED,
    COMING,
    CORES,
    FLAVOR_KIND,
    FLEET,
    HOPE,
    KEPT,
    LEAVING,
    LIMIT,
    LOWEST,
    MEMBER,
    MODEL,
    NEEDS,
    NEEDS_BEYOND,
    NO_MODEL,
    NOBODY,
    NOMINAL,
    OPTIONS,
    OPTIONS_BEYOND,
    OVER,
    PARENT,
    PROMISED,
    PROMISES,
    QUOTED,
    SETS,
    SETS_BEYOND,
    SPARE,
    STUCK,
    UNKNOWN,
    UNLIMITED,
    USED,
    WEIGHT,
    Flavors,
    Log,
    Queues,
    Tree,
    Work,
    compiled,
)


@compiled
def _available(t: Tree, ledger: int, flavor: int, member: int) -> int:
    """As `quota.Ledger.available`, from the root downwards."""
    depth, at = 0, member
    while t.members[at, PARENT] >= 0:
        depth += 1
        at = t.members[at, PARENT]
    available: int = t.ledgers[CAPACITY, flavor, at] - t.ledgers[ledger, flavor, at]
    for level in range(depth - 1, -1, -1):
        at = member
        for _ in range(level):
            at = t.members[at, PARENT]
        used, kept = t.ledgers[ledger, flavor, at], t.ledgers[KEPT, flavor, at]
        limit = t.ledgers[LIMIT, flavor, at]
        if limit < UNLIMITED:
            most = t.ledgers[CAPACITY, flavor, at] + limit
            available = min(available, most - max(used, kept))
        if used < kept:
            available = kept - used + max(0, available)
    return available


@compiled
def spare(f: Flavors, t: Tree, w: Work, log: Log, option: int, member: int) -> bool:
    """Set the quota left of each flavor; False when that is not enough for the least start."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        if not t.ledgers[QUOTED, flavor, member]:
            return False
        available = _available(t, USED, flavor, member)
        if log.counts[PROMISES]:
            available = min(available, _available(t, PROMISED, flavor, member))
        if available < w.needs[need, 1]:
            return False
        f.flavors[flavor, SPARE] = available
    return True


@compiled
def owned(
    f: Flavors, t: Tree, q: Queues, w: Work, option: int, project: int, priority: int
) -> bool:
    """As `Admission.is_owned`."""
    member = q.projects[project, MEMBER]
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, asked = w.needs[need, 0], w.needs[need, 1]
        used = t.ledgers[USED, flavor, member] - t.ledgers[LEAVING, flavor, member]
        if used + asked > t.ledgers[NOMINAL, flavor, member]:
            return False
        if q.ahead[project, f.flavors[flavor, MODEL]] > priority:
            return False
    return bool(q.ahead[project, NO_MODEL] <= priority)


@compiled
def _charge(t: Tree, ledger: int, flavor: int, member: int, amount: int) -> None:
    """As `quota.Ledger.charge`."""
    while member >= 0 and amount:
        kept, before = t.ledgers[KEPT, flavor, member], t.ledgers[ledger, flavor, member]
        t.ledgers[ledger, flavor, member] = before + amount
        amount = max(before + amount, kept) - max(before, kept)
        member = t.members[member, PARENT]


@compiled
def charge(f: Flavors, t: Tree, log: Log, member: int) -> None:
    """What the flavors say was charged in the last start, to the member and those above it."""
    for flavor in range(f.flavors.shape[0]):
        amount = f.flavors[flavor, CHARGED]
        if not amount:
            continue
        _charge(t, USED, flavor, member, amount)
        if log.counts[PROMISES]:
            _charge(t, PROMISED, flavor, member, amount)
        at = member
        while at > 0:
            t.ledgers[OVER, flavor, at] += amount
            at = t.members[at, PARENT]


@compiled
def share(f: Flavors, t: Tree, member: int) -> int:
    """As `share.Shares` has it for one member."""
    most = -1
    for flavor in range(f.flavors.shape[0]):
        over = t.ledgers[OVER, flavor, member]
        if over > 0:
            most = max(most, over * SCALE // f.flavors[flavor, FLEET])
    if most < 0:
        return 0
    weight = t.members[member, WEIGHT]
    return int(most // weight) if weight > 0 else WITHOUT_WEIGHT


@compiled
def may_evict(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, request: int, project: int, priority: int,
    borrowing: bool,
) -> bool:  # fmt: skip
    """Whether evictions, or what is on its way back, might help: then it is decided by hand."""
    if not (log.counts[CAN_EVICT] or log.counts[COMING]):
        return False
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        is_owned = owned(f, t, q, w, option, project, priority)
        if not is_owned and not borrowing:
            continue
        if log.counts[COMING] and not w.options[option, STUCK]:
            return True
        if log.counts[CAN_EVICT]:
            if q.projects[project, LOWEST] < priority:
                return True
            if is_owned and _borrowers(f, t, q, w, option, project):
                return True
    return False


@compiled
def _borrowers(f: Flavors, t: Tree, q: Queues, w: Work, option: int, project: int) -> bool:
    """Whether another project is over its nominal quota with work that may be evicted."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        if not w.needs[need, 1]:
            continue
        for n in range(f.holders.shape[1]):
            other = f.holders[flavor, n]
            if other < 0:
                break
            member = q.projects[other, MEMBER]
            over = t.ledgers[USED, flavor, member] - t.ledgers[NOMINAL, flavor, member]
            if other != project and over > 0:
                return True
    return False


@compiled
def claim(
    f: Flavors, t: Tree, q: Queues, w: Work, request: int, project: int, priority: int
) -> bool:
    """As `Admission.claim`; False when it is not known whether an option is hopeless."""
    first, beyond = w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]
    sets = w.requests[request, SETS_BEYOND] - w.requests[request, SETS]
    for option in range(first, beyond):
        if w.options[option, HOPE] == UNKNOWN and not _beyond(t, q, w, option, project):
            return False
    for option in range(first, beyond):
        if not w.options[option, HOPE] or _beyond(t, q, w, option, project):
            continue
        for nth in range(sets):
            flavor = w.accepted[w.options[option, ACCEPTED] + nth]
            column = f.flavors[flavor, MODEL]
            if f.flavors[flavor, FLAVOR_KIND] == CORES:
                column = NO_MODEL
            if q.ahead[project, column] == NOBODY:
                q.ahead[project, column] = priority
            if q.ahead[project, ANY] == NOBODY:
                q.ahead[project, ANY] = priority
    return True


@compiled
def _beyond(t: Tree, q: Queues, w: Work, option: int, project: int) -> bool:
    """Whether it asks for more than the project could ever have."""
    member = q.projects[project, MEMBER]
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, asked = w.needs[need, 0], w.needs[need, 1]
        if not t.ledgers[QUOTED, flavor, member] or asked > t.ledgers[CEILING, flavor, member]:
            return True
    return False
