"""Quota kept for who has waited long, compiled: what `QuotaGuard.keep` does."""

from scheduler.core.sweep.charging import charge_to, has_quota, kept
from scheduler.core.sweep.state import (
    CLUSTERS,
    DRAWN,
    KEEPER,
    KEEPS,
    KEPT,
    LASTING,
    MEMBER,
    NEEDS,
    NEEDS_BEYOND,
    NOMINAL,
    OPTIONS,
    OPTIONS_BEYOND,
    OWN,
    OWN_LASTING,
    OWN_PROMISED,
    PROMISED,
    PROMISED_DRAWN,
    PROMISES,
    USED,
    WOULD_DO,
    Flavors,
    Log,
    Queues,
    Tree,
    Work,
    compiled,
)


@compiled
def keep_quota(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, workload: int, request: int, project: int
) -> None:
    """Of one without caps that did not start."""
    member = q.projects[project, MEMBER]
    first, beyond = w.requests[request, OPTIONS], w.requests[request, OPTIONS_BEYOND]
    for option in range(first, beyond):
        w.options[option, WOULD_DO] = (
            not _is_kept_from(t, q, w, option, member, workload)
            and _is_there(f, w, request, option)
            and _would_do(f, t, q, w, log, request, option, member, workload)
        )
    for option in range(first, beyond):
        if w.options[option, WOULD_DO]:
            for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
                flavor, asked = w.needs[need, 0], w.needs[need, 1]
                if asked and t.ledgers[KEEPER, flavor, member] != workload:
                    t.ledgers[KEEPS, flavor, member] = 0
                if asked > t.ledgers[KEEPS, flavor, member]:
                    t.ledgers[KEEPS, flavor, member] = asked
                    t.ledgers[KEEPER, flavor, member] = workload


@compiled
def _is_kept_from(t: Tree, q: Queues, w: Work, option: int, member: int, workload: int) -> bool:
    """Whether any of what the option needs is."""
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        if kept(t, q, w.needs[need, 0], member, workload):
            return True
    return False


@compiled
def _is_there(f: Flavors, w: Work, request: int, option: int) -> bool:
    for cluster in range(f.there.shape[1]):
        if w.requests[request, CLUSTERS] >> cluster & 1 and _is_in(f, w, option, cluster):
            return True
    return False


@compiled
def _is_in(f: Flavors, w: Work, option: int, cluster: int) -> bool:
    for need in range(w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]):
        if w.needs[need, 1] > f.there[w.needs[need, 0], cluster]:
            return False
    return True


@compiled
def _would_do(
    f: Flavors, t: Tree, q: Queues, w: Work, log: Log, request: int, option: int, member: int,
    workload: int,
) -> bool:  # fmt: skip
    """Whether there were quota for it, were all of its project's own use gone."""
    first, beyond = w.options[option, NEEDS], w.options[option, NEEDS_BEYOND]
    for need in range(first, beyond):
        flavor = w.needs[need, 0]
        f.flavors[flavor, OWN] = t.ledgers[USED, flavor, member]
        f.flavors[flavor, OWN_LASTING] = t.ledgers[LASTING, flavor, member]
        f.flavors[flavor, OWN_PROMISED] = t.ledgers[PROMISED, flavor, member]
        _charge_own(f, t, log, flavor, member, -1)
    found = has_quota(f, t, q, w, log, request, option, member, workload)
    for need in range(first, beyond):
        _charge_own(f, t, log, w.needs[need, 0], member, 1)
    return bool(found)


@compiled
def _charge_own(f: Flavors, t: Tree, log: Log, flavor: int, member: int, sign: int) -> None:
    lasting = sign * f.flavors[flavor, OWN_LASTING]
    charge_to(t, USED, KEPT, flavor, member, sign * f.flavors[flavor, OWN])
    charge_to(t, LASTING, KEPT, flavor, member, lasting)
    charge_to(t, DRAWN, NOMINAL, flavor, member, lasting)
    if log.counts[PROMISES]:
        promised = sign * f.flavors[flavor, OWN_PROMISED]
        charge_to(t, PROMISED, KEPT, flavor, member, promised)
        charge_to(t, PROMISED_DRAWN, NOMINAL, flavor, member, promised)
