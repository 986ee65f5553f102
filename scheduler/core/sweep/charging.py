"""Who may use how much, compiled: what `quota`, `share` and `admission` ask."""

from scheduler.core.quota.share import SCALE, WITHOUT_WEIGHT
from scheduler.core.sweep.state import (
    ACCEPTED,
    ANY,
    AWAITED,
    BACK_IN,
    CAPACITY,
    CEILING,
    CHARGED,
    CORES,
    DEPTH,
    DRAWN,
    FIRM,
    FIRM_CEILING,
    FLAVOR_KIND,
    FLEET,
    GIVERS,
    HOPE,
    KEEPER,
    KEEPS,
    KEPT,
    LASTING,
    LIMIT,
    LIMIT_S,
    MEMBER,
    MODEL,
    NAME,
    NEEDS,
    NEEDS_BEYOND,
    NO_MODEL,
    NOBODY,
    NOMINAL,
    OPTIONS,
    OPTIONS_BEYOND,
    OVER,
    PARENT,
    PART,
    PRIORITY,
    PROJECT,
    PROMISED,
    PROMISED_DRAWN,
    PROMISES,
    QUOTED,
    SETS,
    SETS_BEYOND,
    SPARE,
    TURN,
    UNKNOWN,
    UNLIMITED,
    USED,
    WEIGHT,
    WHOLE_OF,
    Flavors,
    Log,
    Queues,
    Tree,
    Work,
    compiled,
)
from scheduler.core.units import ONE_MILLI


@compiled
def available(t: Tree, ledger: int, flavor: int, member: int) -> int:
    """As `ledger.Ledger.available`, from the root downwards."""
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
def member_of(q: Queues, workload: int) -> int:
    """That of its project."""
    return int(q.projects[q.workloads[workload, PROJECT], MEMBER])


@compiled
def spare(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, option: int, member: int, workload: int
) -> bool:
    """Set the quota left of each flavor; False when that is not enough for the least start."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        if not t.ledgers[QUOTED, flavor, member]:
            return False
        available = _left(t, log, flavor, member) - kept(t, q, flavor, member, workload)
        if available < w.needs[need, 1]:
            return False
        f.flavors[flavor, SPARE] = available
    return True


@compiled
def _left(t: Tree, log: Log, flavor: int, member: int) -> int:
    """As `Admission.available`, of a member with quota."""
    now = available(t, USED, flavor, member)
    return min(now, promised(t, flavor, member)) if log.counts[PROMISES] else now


@compiled
def kept(t: Tree, q: Queues, flavor: int, member: int, workload: int) -> int:
    """As `KeptQuota.amount`."""
    ends = q.workloads[workload, LIMIT_S] <= t.ledgers[BACK_IN, flavor, member]
    is_kept_from = not ends and is_behind(t, q, flavor, member, workload)
    return int(t.ledgers[KEEPS, flavor, member]) if is_kept_from else 0


@compiled
def is_behind(t: Tree, q: Queues, flavor: int, member: int, workload: int) -> bool:
    """As `KeptQuota.ahead`, whether there is any."""
    if not t.ledgers[KEEPS, flavor, member]:
        return False
    keeper = t.ledgers[KEEPER, flavor, member]
    for column in (PRIORITY, TURN, NAME):
        mine, other = q.workloads[workload, column], q.workloads[keeper, column]
        if mine != other:
            return bool(mine < other if column == PRIORITY else mine > other)
    return False


@compiled
def is_kept(
    t: Tree, q: Queues, w: Work, log: Log, option: int, member: int, workload: int
) -> bool:
    """As `KeptQuota.why_not`: whether it is told more than None."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        amount = kept(t, q, flavor, member, workload)
        if amount and _left(t, log, flavor, member) - amount < w.needs[need, 1]:
            return True
    return False


@compiled
def lack_alike(t: Tree, q: Queues, w: Work, log: Log, request: int, a: int, b: int) -> bool:
    """Whether two workloads have the same to be told of the quota for it: of all that an option
    needs both have enough, or all numbers are the same."""
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
            if not _is_like(t, q, log, w.needs[need, 0], w.needs[need, 1], a, b):
                return False
    return True


@compiled
def _is_like(t: Tree, q: Queues, log: Log, flavor: int, asked: int, a: int, b: int) -> bool:
    my, other = member_of(q, a), member_of(q, b)
    of_a, of_b = _left(t, log, flavor, my), _left(t, log, flavor, other)
    kept_a, kept_b = kept(t, q, flavor, my, a), kept(t, q, flavor, other, b)
    both = t.ledgers[QUOTED, flavor, my] and t.ledgers[QUOTED, flavor, other]
    if both and min(of_a - kept_a, of_b - kept_b) >= asked:
        return True
    same = of_a == of_b and kept_a == kept_b
    for ledger in (QUOTED, USED, NOMINAL, LIMIT, CEILING):
        same = same and t.ledgers[ledger, flavor, my] == t.ledgers[ledger, flavor, other]
    return bool(same)


@compiled
def promised(t: Tree, flavor: int, member: int) -> int:
    """What is left once all that leaves is back, and what is promised is taken."""
    return int(min(available(t, PROMISED, flavor, member), _not_awaited(t, flavor, member)))


@compiled
def _not_awaited(t: Tree, flavor: int, member: int) -> int:
    """What `ledger.Ledger.available` leaves of what is promised where that is awaited."""
    most, at = UNLIMITED, member
    while at > 0:
        if t.ledgers[AWAITED, flavor, at]:
            room = _room(t, PROMISED_DRAWN, NOMINAL, NOMINAL, flavor, member, at)
            most = min(most, room)
        at = t.members[at, PARENT]
    return most


@compiled
def _room(t: Tree, used: int, stays: int, most: int, flavor: int, member: int, at: int) -> int:
    """As `ledger.Ledger.rooms` has it for one `at` or above the member."""
    below = 0
    while member != at:
        below += max(0, t.ledgers[stays, flavor, member] - t.ledgers[used, flavor, member])
        member = t.members[member, PARENT]
    room = int(t.ledgers[most, flavor, at] - t.ledgers[used, flavor, at])
    return room + below if room >= 0 else room


@compiled
def nearest(t: Tree, w: Work, used: int, stays: int, most: int, option: int, member: int) -> int:
    """The nearest that has room of all that is asked for, from the member up to below the fleet;
    0 when there is none."""
    at = member
    while at > 0:
        fits = True
        for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
            flavor, asked = w.needs[need, 0], w.needs[need, 1]
            if asked > _room(t, used, stays, most, flavor, member, at):
                fits = False
                break
        if fits:
            return int(at)
        at = t.members[at, PARENT]
    return 0


@compiled
def firm_spare(t: Tree, f: Flavors, w: Work, log: Log, option: int, member: int) -> bool:
    """As `firm.narrowed`, of what `spare` has set."""
    for draft in range(1 + log.counts[PROMISES]):
        drawn = PROMISED_DRAWN if draft else DRAWN
        at = nearest(t, w, drawn, NOMINAL, NOMINAL, option, member)
        if not at:
            return False
        for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
            flavor = w.needs[need, 0]
            room = _room(t, drawn, NOMINAL, NOMINAL, flavor, member, at)
            f.flavors[flavor, SPARE] = min(f.flavors[flavor, SPARE], room)
    return True


@compiled
def has_quota(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, request: int, option: int, member: int,
    workload: int,
) -> bool:  # fmt: skip
    """As `Admission.has_quota`, of one without caps; what is left of each flavor is set."""
    if not spare(f, t, q, w, log, option, member, workload):
        return False
    return bool(not w.requests[request, FIRM] or firm_spare(t, f, w, log, option, member))


@compiled
def guarantor(
    f: Flavors, t: Tree, q: Queues, w: Work, option: int, project: int, priority: int
) -> int:
    """As `Admission.guarantor`."""
    if q.ahead[project, NO_MODEL] > priority:
        return 0
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        if q.ahead[project, f.flavors[w.needs[need, 0], MODEL]] > priority:
            return 0
    return nearest(t, w, LASTING, KEPT, CAPACITY, option, q.projects[project, MEMBER])


@compiled
def narrow(
    f: Flavors, t: Tree, q: Queues, w: Work, option: int, project: int, priority: int
) -> None:
    """As `Admission._narrow`, of what `spare` has set."""
    by, member = guarantor(f, t, q, w, option, project, priority), q.projects[project, MEMBER]
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, room = w.needs[need, 0], w.needs[need, 1]
        if by > 0:
            room = _room(t, LASTING, KEPT, CAPACITY, flavor, member, by)
        f.flavors[flavor, SPARE] = min(f.flavors[flavor, SPARE], room)


@compiled
def is_of_tier(t: Tree, q: Queues, project: int, by: int, tier: int) -> bool:
    """Whether what that member guarantees is of the tier, or of one before it."""
    if tier <= 0 or by <= 0:
        return tier <= 0
    return bool(by == q.projects[project, MEMBER] or t.members[by, DEPTH] >= tier)


@compiled
def _charge(t: Tree, ledger: int, stays: int, flavor: int, member: int, amount: int) -> None:
    """As `ledger.Ledger.charge`."""
    while member >= 0 and amount:
        kept, before = t.ledgers[stays, flavor, member], t.ledgers[ledger, flavor, member]
        t.ledgers[ledger, flavor, member] = before + amount
        amount = max(before + amount, kept) - max(before, kept)
        member = t.members[member, PARENT]


@compiled
def charge_use(
    t: Tree, log: Log, flavor: int, member: int, used: int, lasting: int, promised: int
) -> None:
    """What is used, what of that lasts, and what is promised."""
    _charge(t, USED, KEPT, flavor, member, used)
    _charge(t, LASTING, KEPT, flavor, member, lasting)
    _charge(t, DRAWN, NOMINAL, flavor, member, lasting)
    if log.counts[PROMISES]:
        _charge(t, PROMISED, KEPT, flavor, member, promised)
        _charge(t, PROMISED_DRAWN, NOMINAL, flavor, member, promised)


@compiled
def charge(f: Flavors, t: Tree, log: Log, member: int) -> None:
    """What the flavors say was charged in the last start, to the member and those above it."""
    for flavor in range(f.flavors.shape[0]):
        amount = f.flavors[flavor, CHARGED]
        if not amount:
            continue
        _charge_all(t, log, flavor, member, amount)
        whole = f.flavors[flavor, WHOLE_OF]
        if whole >= 0 and t.ledgers[QUOTED, whole, member]:
            _charge_all(t, log, whole, member, amount * f.flavors[flavor, PART] // ONE_MILLI)


@compiled
def _charge_all(t: Tree, log: Log, flavor: int, member: int, amount: int) -> None:
    """What is used of the flavor, what is promised, and how far members are over."""
    charge_use(t, log, flavor, member, amount, amount, amount)
    at = member
    while at > 0:
        t.ledgers[OVER, flavor, at] += amount
        t.shares[at] = UNKNOWN
        at = t.members[at, PARENT]
    t.ledgers[GIVERS, flavor, 0] = UNKNOWN


@compiled
def share(f: Flavors, t: Tree, member: int) -> int:
    """As `share.Shares` has it for one member. Worked out once for all who ask before it is
    charged: divisions are most of what a head costs."""
    if t.shares[member] == UNKNOWN:
        t.shares[member] = _share(f, t, member)
    return int(t.shares[member])


@compiled
def _share(f: Flavors, t: Tree, member: int) -> int:
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
def claim(
    f: Flavors, t: Tree, q: Queues, w: Work, request: int, project: int, priority: int
) -> bool:
    """As `Admission.claim`; False when it is not known whether an option is hopeless."""
    first, beyond = w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]
    sets = w.requests[request, SETS_BEYOND] - w.requests[request, SETS]
    for option in range(first, beyond):
        if w.options[option, HOPE] == UNKNOWN and not _beyond(t, q, w, request, option, project):
            return False
    for option in range(first, beyond):
        if not w.options[option, HOPE] or _beyond(t, q, w, request, option, project):
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
def _beyond(t: Tree, q: Queues, w: Work, request: int, option: int, project: int) -> bool:
    """Whether it asks for more than the project could ever have."""
    member = q.projects[project, MEMBER]
    ceiling = FIRM_CEILING if w.requests[request, FIRM] else CEILING
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, asked = w.needs[need, 0], w.needs[need, 1]
        if not t.ledgers[QUOTED, flavor, member] or asked > t.ledgers[ceiling, flavor, member]:
            return True
    return False
