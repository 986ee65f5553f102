"""Quota kept for who has waited long, compiled: what `QuotaGuard.keep` does."""

from scheduler.core.sweep.charging import (
    charge_use,
    has_quota,
    is_behind,
    is_of_tier,
    nearest,
)
from scheduler.core.sweep.state import (
    BACK_IN,
    CAPACITY,
    KEEPER,
    KEEPS,
    KEPT,
    LASTING,
    LIMIT,
    LIMITED,
    MEMBER,
    NEEDS,
    NEEDS_BEYOND,
    OPTIONS,
    OPTIONS_BEYOND,
    OWN,
    OWN_LASTING,
    OWN_PROMISED,
    PARENT,
    PROMISED,
    RECLAIMS,
    THERE,
    UNKNOWN,
    UNLIMITED,
    USED,
    Flavors,
    Log,
    Queues,
    Tree,
    Work,
    compiled,
)


@compiled
def keep_quota(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, workload: int, request: int, project: int,
    tier: int,
) -> bool:  # fmt: skip
    """Of one without caps that did not start; False when it is not known whether an option would
    find room, or has to be known when the quota is back."""
    member = q.projects[project, MEMBER]
    for option in range(w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]):
        if (
            _is_any_ahead(t, q, w, option, member, workload)
            or has_quota(f, t, q, w, log, request, option, member, workload)
            or not _would_have(f, t, q, w, log, request, option, project, workload, tier)
        ):
            continue
        if w.options[option, THERE] == UNKNOWN:
            return False
        if w.options[option, THERE]:
            if not _is_for(t, w, option, member, workload):
                if q.projects[project, LIMITED]:
                    return False
                _keep(t, w, option, member, workload)
            return True
    return True


@compiled
def _keep(t: Tree, w: Work, option: int, member: int, workload: int) -> None:
    """As `KeptQuota.keep`, of one from whom nothing is kept."""
    _drop(t, member, workload)
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor = w.needs[need, 0]
        if w.needs[need, 1]:
            if t.ledgers[KEEPS, flavor, member]:
                _drop(t, member, t.ledgers[KEEPER, flavor, member])
            t.ledgers[KEEPS, flavor, member] = w.needs[need, 1]
            t.ledgers[KEEPER, flavor, member] = workload
            t.ledgers[BACK_IN, flavor, member] = UNKNOWN


@compiled
def _is_for(t: Tree, w: Work, option: int, member: int, workload: int) -> bool:
    """As `KeptQuota.is_for`, of what the option needs."""
    count = 0
    for flavor in range(t.ledgers.shape[1]):
        if t.ledgers[KEEPS, flavor, member] and t.ledgers[KEEPER, flavor, member] == workload:
            count += 1
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, asked = w.needs[need, 0], w.needs[need, 1]
        if asked:
            count -= 1
            is_own = t.ledgers[KEEPER, flavor, member] == workload
            if not is_own or t.ledgers[KEEPS, flavor, member] != asked:
                return False
    return count == 0


@compiled
def _drop(t: Tree, member: int, workload: int) -> None:
    """Nothing is kept for it."""
    for flavor in range(t.ledgers.shape[1]):
        if t.ledgers[KEEPER, flavor, member] == workload:
            t.ledgers[KEEPS, flavor, member] = 0


@compiled
def _is_any_ahead(t: Tree, q: Queues, w: Work, option: int, member: int, workload: int) -> bool:
    """Whether any of what the option needs is kept for one who stands before it."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        if is_behind(t, q, w.needs[need, 0], member, workload):
            return True
    return False


@compiled
def _would_have(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, request: int, option: int, project: int,
    workload: int, tier: int,
) -> bool:  # fmt: skip
    """Whether it would have enough, and in the tier, were all of its project's own use gone."""
    member = q.projects[project, MEMBER]
    first, beyond = w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]
    for need in range(first, beyond):
        flavor = w.needs[need, 0]
        f.flavors[flavor, OWN] = t.ledgers[USED, flavor, member]
        f.flavors[flavor, OWN_LASTING] = t.ledgers[LASTING, flavor, member]
        f.flavors[flavor, OWN_PROMISED] = t.ledgers[PROMISED, flavor, member]
        _charge_own(f, t, log, flavor, member, -1)
    by = nearest(t, w, LASTING, KEPT, CAPACITY, option, member)
    found = is_of_tier(t, q, project, by, tier) and (
        (log.counts[RECLAIMS] and by > 0 and _is_within_limits(t, w, option, member, by))
        or has_quota(f, t, q, w, log, request, option, member, workload)
    )
    for need in range(first, beyond):
        _charge_own(f, t, log, w.needs[need, 0], member, 1)
    return bool(found)


@compiled
def _is_within_limits(t: Tree, w: Work, option: int, member: int, by: int) -> bool:
    """Whether what is asked for is within those of the members up to that one."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        flavor, more, at = w.needs[need, 0], w.needs[need, 1], member
        while at >= by and more > 0:
            used, kept_there = t.ledgers[USED, flavor, at], t.ledgers[KEPT, flavor, at]
            limit = t.ledgers[LIMIT, flavor, at]
            if limit < UNLIMITED and used + more > t.ledgers[CAPACITY, flavor, at] + limit:
                return False
            more = max(used + more, kept_there) - max(used, kept_there)
            at = t.members[at, PARENT]
    return True


@compiled
def _charge_own(f: Flavors, t: Tree, log: Log, flavor: int, member: int, sign: int) -> None:
    used, lasting = sign * f.flavors[flavor, OWN], sign * f.flavors[flavor, OWN_LASTING]
    charge_use(t, log, flavor, member, used, lasting, sign * f.flavors[flavor, OWN_PROMISED])
