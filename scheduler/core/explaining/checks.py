"""What a plan asked of one workload, check by check, in the order it asks, and where it failed.

The first failed check carries the very Reason that the plan holds the workload with; what comes
after was not reached. First what does not depend on the flavor, then for each accepted option.

Everything follows from the reasons: a new one needs its line in SHARED or BY_OPTION.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduler.core.bounds.limits import HOPELESS
from scheduler.core.cycle import Cycle
from scheduler.core.explaining.change import Unit
from scheduler.core.plan import Admit, Hold
from scheduler.core.quota.cohorts import FLEET
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import BINDS_MEMORY, Reason, ReasonCode
from scheduler.core.request import Option, Refusal, Request
from scheduler.core.snapshot import Isolation, PendingView

MOST_CHAINS = 8
"""Options that are told of, the preferred ones first; the one the plan tells of is among them."""


class CheckCode(StrEnum):
    """Stable codes, in the order in which they are asked."""

    SOUND = "sound"  # what is stored of it does not contradict itself
    ADMITTING = "admitting"  # no broken promise has stopped admission
    QUEUE = "queue"  # the project is open, and all tenants above it
    GATES = "gates"  # all its gates are open
    STRAYS = "strays"  # none of its pods run that the database does not know
    DEPENDENCIES = "dependencies"  # what it waits for by its own wish has ended
    PODS = "pods"  # its pods, which its cluster's controllers make, are there
    RETRY = "retry"  # after a failed start enough time has passed
    TURN = "turn"  # the plan came to it
    CAPS = "caps"  # the project, its submitter and its array may run one more
    RESERVATIONS = "reservations"  # it runs into nothing that is kept for others
    PROMISES = "promises"  # nothing is being freed or kept for it, which it would have to wait for
    ISOLATION = "isolation"  # the flavor keeps neighbours as far apart as is accepted
    BUDGET = "budget"  # the budgets of the project, and of those above it, cover it
    FIRM = "firm"  # work that may not be preempted stays within what it is guaranteed
    OWN_QUOTA = "own-quota"  # nominal and borrowing limit of the project
    TENANT_QUOTA = "tenant-quota"  # the same of a tenant above it
    FLEET_QUOTA = "fleet-quota"  # what all lend together
    CLUSTERS = "clusters"  # an accepted cluster takes new work
    HARDWARE = "hardware"  # empty, an accepted cluster could hold it
    HELD = "held"  # it does not lack clusters and pools that are held
    NODES = "nodes"  # it does not lack nodes that can come
    OUTAGES = "outages"  # it does not lack what is out of service now
    FREE = "free"  # enough of the flavor is free in one cluster
    DOMAIN = "domain"  # all pods, or those of a pod set, fit in domains of the topology
    CORES = "cores"  # beside the devices there are the cores
    MEMORY = "memory"
    FIT = "fit"  # what is free lies where the pods fit
    KEPT = "kept"  # what it would start on is not kept for who comes first
    EVICTION = "eviction"  # where another fails: whether evictions would make up for that


SHARED: Mapping[ReasonCode, CheckCode] = {
    ReasonCode.INVALID: CheckCode.SOUND,
    ReasonCode.ADMISSION_STOPPED: CheckCode.ADMITTING,
    ReasonCode.QUEUE_HELD: CheckCode.QUEUE,
    ReasonCode.GATE: CheckCode.GATES,
    ReasonCode.DEPENDENCY: CheckCode.DEPENDENCIES,
    ReasonCode.GATHERING: CheckCode.PODS,
    ReasonCode.STRAYS: CheckCode.STRAYS,
    ReasonCode.BACKOFF: CheckCode.RETRY,
    ReasonCode.BEHIND: CheckCode.TURN,
    ReasonCode.CAP_REACHED: CheckCode.CAPS,
    ReasonCode.ARRAY_FULL: CheckCode.CAPS,
    ReasonCode.RESERVED: CheckCode.RESERVATIONS,
    ReasonCode.WAITING_FOR_PREEMPTION: CheckCode.PROMISES,
    ReasonCode.ROOM_KEPT: CheckCode.PROMISES,
}
"""Where a workload fails whatever the option; of memory of a device, at a cap with some only."""

BY_OPTION: Mapping[ReasonCode, CheckCode] = {
    ReasonCode.ISOLATION: CheckCode.ISOLATION,
    ReasonCode.NEVER_ADMISSIBLE: CheckCode.OWN_QUOTA,
    ReasonCode.QUOTA_USED: CheckCode.OWN_QUOTA,
    ReasonCode.COHORT_USED: CheckCode.OWN_QUOTA,
    ReasonCode.QUOTA_KEPT: CheckCode.KEPT,
    ReasonCode.BUDGET_USED: CheckCode.BUDGET,
    ReasonCode.RUN_TIME_UNKNOWN: CheckCode.BUDGET,
    ReasonCode.NO_MATCHING_FLAVOR: CheckCode.HARDWARE,
    ReasonCode.EXCEEDS_CAPACITY: CheckCode.HARDWARE,
    ReasonCode.HARDWARE_HELD: CheckCode.HELD,
    ReasonCode.WAITING_FOR_NODE: CheckCode.NODES,
    ReasonCode.CLUSTER_UNAVAILABLE: CheckCode.OUTAGES,
    ReasonCode.NO_FREE_CAPACITY: CheckCode.FREE,
    ReasonCode.NO_FIT: CheckCode.FIT,
    ReasonCode.KEPT_FOR_OTHERS: CheckCode.KEPT,
}
"""Where an option fails, at the least: see `_fails_at`."""

_VAIN = HOPELESS | {
    ReasonCode.BUDGET_USED,
    ReasonCode.RUN_TIME_UNKNOWN,
    ReasonCode.CAP_REACHED,
    ReasonCode.QUOTA_KEPT,
}
"""No eviction makes up for these."""

_OF_CLUSTERS = (CheckCode.HARDWARE, CheckCode.HELD, CheckCode.NODES, CheckCode.OUTAGES)
"""Where no accepted cluster has or takes anything, CLUSTERS fails instead."""

_MEASURES: Mapping[CheckCode, tuple[str, str, Unit]] = {
    CheckCode.GATES: ("gates_count", "", Unit.COUNT),
    CheckCode.DEPENDENCIES: ("unmet_count", "", Unit.COUNT),
    CheckCode.PODS: ("missing_count", "", Unit.COUNT),
    CheckCode.RETRY: ("retry_in_s", "", Unit.SECONDS),
    CheckCode.RESERVATIONS: ("lacking_milli", "", Unit.MILLI),
    CheckCode.PROMISES: ("coming_milli", "", Unit.MILLI),
    CheckCode.BUDGET: ("asked_milli", "left_milli", Unit.MILLI),
    CheckCode.FIRM: ("asked_milli", "available_milli", Unit.MILLI),
    CheckCode.HELD: ("asked_milli", "free_milli", Unit.MILLI),
    CheckCode.NODES: ("asked_milli", "free_milli", Unit.MILLI),
    CheckCode.OUTAGES: ("asked_milli", "free_milli", Unit.MILLI),
    CheckCode.FREE: ("asked_milli", "free_milli", Unit.MILLI),
    CheckCode.DOMAIN: ("pods_count", "most_pods_count", Unit.COUNT),
    CheckCode.CORES: ("pod_cpu_milli", "largest_cpu_milli", Unit.MILLI),
    CheckCode.MEMORY: ("pod_memory_mib", "largest_memory_mib", Unit.MEBIBYTES),
    CheckCode.FIT: ("pod_milli", "largest_free_milli", Unit.MILLI),
}
"""The numbers of the reason that a failed check compares; without the second the limit is 0."""
_IN_SUM: Mapping[CheckCode, Sequence[tuple[str, str, Unit]]] = {
    CheckCode.HARDWARE: [_MEASURES[CheckCode.FREE]],
    CheckCode.HELD: [_MEASURES[CheckCode.FIT]],
    CheckCode.NODES: [_MEASURES[CheckCode.FIT]],
    CheckCode.OUTAGES: [_MEASURES[CheckCode.FIT]],
    CheckCode.PROMISES: [("kept_milli", "", Unit.MILLI)],
    CheckCode.BUDGET: [("used_milli", "limit_milli", Unit.MILLI)],
}
"""And those that it compares where the first do: of a gang each pod may find its place, and yet
not all of them; what it waits for may be kept for it, not freed."""


@dataclass(frozen=True, slots=True)
class Check:
    """`passed` None: not reached. It passes where `value` is at most `limit`, if both are known;
    a limit of None beside a value is none. `flavor` is a name; `where` is a cohort's id or a
    level of the topology. `reason` is set where it fails, save EVICTION, which has none."""

    code: CheckCode
    passed: bool | None
    value: int | None = None
    limit: int | None = None
    unit: Unit = Unit.NONE
    flavor: str = ""
    where: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """The checks of one option, `flavors` the names it takes, a pod set each; or of one flavor
    that may not be had. `told`: the plan's decision is about this one."""

    flavors: tuple[str, ...]
    told: bool
    checks: tuple[Check, ...]


def shared_checks(*, pending: PendingView, decision: Admit | Hold) -> tuple[Check, ...]:
    """What is asked whatever the flavor; all pass where the decision depends on the flavor."""
    reason = decision.reason if isinstance(decision, Hold) else None
    fails = None if reason is None else SHARED.get(reason.code)
    codes = set(SHARED.values())
    if pending.gate is None:
        codes.remove(CheckCode.GATES)
    if pending.waits_for is None:
        codes.remove(CheckCode.DEPENDENCIES)
    if pending.gathering is None:
        codes.remove(CheckCode.PODS)
    if pending.strays is None:
        codes.remove(CheckCode.STRAYS)
    rows = [Check(code, passed=True) for code in CheckCode if code in codes]
    nth = next((i for i, row in enumerate(rows) if row.code is fails), None)
    return _stopped(rows, nth, reason)


def chains(*, cycle: Cycle, pending: PendingView, decision: Admit | Hold) -> tuple[Chain, ...]:
    """By option; () for what the plan did not come to. Of an admission only the option taken."""
    request = cycle.request_of(pending)
    if request is None:
        return ()
    if isinstance(decision, Admit):
        option = _taken(request, pending, decision)
        with _undone(cycle, pending, decision):
            return (_chain(cycle, pending, option, None, told=True),)
    if decision.reason.code in SHARED:
        return ()
    if not request.options and not request.refused:  # no accepted flavor suits it
        row = Check(CheckCode.HARDWARE, passed=False, reason=decision.reason)
        return (Chain((), told=True, checks=(row,)),)
    reasons = {o: cycle.why_not(pending, request, o) for o in request.options}
    same = (o for o, reason in reasons.items() if _is_told(reason, decision.reason))
    refused = [r for r in request.refused if r.reason == decision.reason]
    shown: list[Option | Refusal] = [*request.options, *request.refused]
    said: list[Option | Refusal] = [*same, *refused, *shown]
    told = said[0]
    if isinstance(told, Option):
        reasons[told] = decision.reason
    if told not in shown[:MOST_CHAINS]:
        shown[MOST_CHAINS - 1] = told
    return tuple(
        _chain(cycle, pending, each, reasons[each], told=each is told)
        if isinstance(each, Option)
        else _refused(pending, each, told=each is told)
        for each in shown[:MOST_CHAINS]
    )


def _refused(pending: PendingView, refusal: Refusal, *, told: bool) -> Chain:
    """Of one flavor, whatever others it would start with: nobody asks for quota or room."""
    rows = [Check(CheckCode.ISOLATION, passed=True), *_room_rows(pending)]
    fails = fails_at(refusal.reason)
    nth = next(i for i, row in enumerate(rows) if row.code is fails)
    return Chain((refusal.flavor.name,), told, _stopped(rows, nth, refusal.reason))


def _is_told(reason: Reason, told: Reason) -> bool:
    """Whether it is the one that is told, which may have more numbers."""
    return reason.code is told.code and set(reason.numbers) <= set(told.numbers)


def fails_at(reason: Reason) -> CheckCode:
    """The check that gives the reason. OWN_QUOTA stands for each of the quotas."""
    shared = SHARED.get(reason.code)
    if shared is not None:
        return shared
    code, numbers = BY_OPTION[reason.code], dict(reason.numbers)
    if code in _OF_CLUSTERS and "flavor" not in numbers:
        return CheckCode.CLUSTERS
    if "guaranteed_milli" in numbers:
        return CheckCode.FIRM
    return _within_fit(numbers) if code is CheckCode.FIT else code


def _chain(
    cycle: Cycle, pending: PendingView, option: Option, reason: Reason | None, *, told: bool
) -> Chain:
    # What was promised after it had started is no matter of its own.
    books = [cycle.admission.draft.book]
    if reason is not None and cycle.admission.promised is not None:
        books.append(cycle.admission.promised.book)
    rows = [*_quota_rows(cycle, pending, option, books), *_room_rows(pending)]
    if not pending.preemptible:
        rows.insert(0, Check(CheckCode.FIRM, passed=True))
    if cycle.admission.caps.budgets.binds(pending.project):
        rows.insert(0, Check(CheckCode.BUDGET, passed=True))
    if any(pod_set.least_isolation is not Isolation.NONE for pod_set in pending.pod_sets) or (
        pending.project in cycle.admission.draft.book.isolations
    ):
        rows.insert(0, Check(CheckCode.ISOLATION, passed=True))
    if reason is not None and reason.code is ReasonCode.CAP_REACHED:
        rows.insert(0, Check(CheckCode.CAPS, passed=True))  # with another flavor it has not
    nth = None
    if reason is not None:
        fails = fails_at(reason)
        if fails is CheckCode.OWN_QUOTA:
            nth = next((i for i, row in enumerate(rows) if not row.passed), 0)
        else:
            nth = next(i for i, row in enumerate(rows) if row.code is fails)
    checks = _stopped(rows, nth, reason)
    if reason is not None and reason.code not in _VAIN:
        checks = (*checks, _eviction(cycle, pending, option))
    return Chain(tuple(flavor.name for flavor in option.flavors), told, checks)


def _stopped(rows: Sequence[Check], nth: int | None, reason: Reason | None) -> tuple[Check, ...]:
    """The rows where the nth fails for the reason; where none does, all pass."""
    if nth is None or reason is None:
        return tuple(replace(row, passed=True) for row in rows)
    passed = (replace(row, passed=True) for row in rows[:nth])
    beyond = (Check(row.code, None, flavor=row.flavor, where=row.where) for row in rows[nth + 1 :])
    return (*passed, _failed(rows[nth], reason), *beyond)


def _failed(row: Check, reason: Reason) -> Check:
    """With the numbers that did not do."""
    numbers = dict(reason.numbers)
    row = replace(
        row,
        passed=False,
        reason=reason,
        flavor=row.flavor or str(numbers.get("flavor", "")),
        where=str(numbers.get("level", row.where)),
    )
    code = _within_fit(numbers) if row.code is CheckCode.HARDWARE else row.code
    if code is CheckCode.CAPS:
        return _capped(row, numbers)
    if "gpu_memory_mib" in numbers:
        value, limit = int(numbers["gpu_memory_mib"]), int(numbers["largest_gpu_memory_mib"])
        return replace(row, value=value, limit=limit, unit=Unit.MEBIBYTES)
    if row.value is not None or code not in _MEASURES:
        return row
    for asked, most, unit in (_MEASURES[code], *_IN_SUM.get(row.code, ())):
        value, limit = int(numbers.get(asked, 0)), int(numbers.get(most, 0))
        if value > limit:
            return replace(row, value=value, limit=limit, unit=unit)
    return row


def _capped(row: Check, numbers: Mapping[str, int | str]) -> Check:
    unit, used, asked = Unit.COUNT, int(numbers.get("used_count", 0)), 1
    if "limit_milli" in numbers:
        unit, used, asked = Unit.MILLI, int(numbers["used_milli"]), int(numbers["asked_milli"])
    limit = int(numbers.get(f"limit_{unit}", 0))
    return replace(row, value=used + asked, limit=limit, unit=unit)


def _within_fit(numbers: Mapping[str, int | str]) -> CheckCode:
    """What of the fit it was, by the numbers of a reason."""
    if "level" in numbers:
        return CheckCode.DOMAIN
    if "binds" in numbers:
        return CheckCode.MEMORY if numbers["binds"] == BINDS_MEMORY else CheckCode.CORES
    return CheckCode.FIT


def _quota_rows(
    cycle: Cycle, pending: PendingView, option: Option, books: Sequence[Book]
) -> Iterator[Check]:
    """Upwards from the project, of what the least start needs; whether each would do. By the book
    that leaves least."""
    project, flavors = pending.project, cycle.admission.draft.flavors
    for flavor, asked in option.needs:
        left = [book.available(project=project, flavor=flavor) or 0 for book in books]
        book = books[left.index(min(left))]
        name, cohorts = flavors[flavor].name, book.cohorts
        number = cohorts.number.get(project)
        if number is None or book.available(project=project, flavor=flavor) is None:
            yield Check(CheckCode.OWN_QUOTA, False, asked, 0, Unit.MILLI, name)
            continue
        ledger = book.ledger(flavor)
        awaited = (row for row in ledger.awaited_law(number, asked) if row[1] > row[2])
        for member, value, limit in (*ledger.law(number, asked), *awaited):
            code, where = CheckCode.TENANT_QUOTA, cohorts.names[member].removeprefix("cohort ")
            if member in (number, FLEET):
                code = CheckCode.OWN_QUOTA if member == number else CheckCode.FLEET_QUOTA
                where = ""
            passes = limit is None or value <= limit
            yield Check(code, passes, value, limit, Unit.MILLI, name, where)


def _room_rows(pending: PendingView) -> Iterator[Check]:
    asked = pending.topology, *(pod_set.topology for pod_set in pending.pod_sets)
    for code in (CheckCode.CLUSTERS, *_OF_CLUSTERS, CheckCode.FREE):
        yield Check(code, passed=True)
    levels = [topology.level for topology in asked if topology is not None and topology.required]
    if levels:
        yield Check(CheckCode.DOMAIN, passed=True, where=levels[0])
    for code in (CheckCode.CORES, CheckCode.MEMORY, CheckCode.FIT, CheckCode.KEPT):
        yield Check(code, passed=True)


def _eviction(cycle: Cycle, pending: PendingView, option: Option) -> Check:
    """How many may be evicted for it; that none of them would help is known by now. Not reached
    where the plan evicts nobody for it, or for nobody further."""
    evictions, kept = cycle.evictions, cycle.admission.kept
    if evictions is None or not (evictions.may_evict and kept.may_evict(pending, option)):
        return Check(CheckCode.EVICTION, None)
    own = evictions.candidates.own_amounts(pending=pending)
    guarantor = cycle.admission.guarantor(pending=pending, option=option, gives_way=own)
    eligible = cycle.eligible(evictions, pending, option, guarantor)
    found = {
        victim.held.holding.id
        for cluster in cycle.snapshot.clusters
        for victim in eligible.in_cluster(cluster.id)
        if eligible.may_go(victim, ())
    }
    return Check(CheckCode.EVICTION, False, len(found), unit=Unit.COUNT)


def _taken(request: Request, pending: PendingView, admit: Admit) -> Option:
    """The option that it starts with."""
    by_set = {place.pod_set: place.flavor for place in admit.places}
    wanted = [by_set.get(pod_set.id) for pod_set in pending.pod_sets]
    return next(o for o in request.options if [flavor.id for flavor in o.flavors] == wanted)


@contextmanager
def _undone(cycle: Cycle, pending: PendingView, admit: Admit) -> Iterator[None]:
    """The usage without what it starts with."""
    book = cycle.admission.draft.book

    def charge(sign: int) -> None:
        for place in admit.places:
            amount = sign * place.amount_milli
            book.charge(project=pending.project, flavor=place.flavor, amount_milli=amount)

    charge(-1)
    yield
    charge(1)
