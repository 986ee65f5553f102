"""What puts the laws to the test: each kind of decision, and each case in which a law could have
been broken. Counted, so that none of them is thought to hold only because it never came about."""

from collections.abc import Iterator
from enum import StrEnum

from scheduler.core.plan import Plan
from scheduler.core.reasons import ReasonCode


class Case(StrEnum):
    STARTS = "starts"
    GANG = "a gang starts"
    PART = "a gang starts with fewer pods than it asks for"
    SEVERAL = "a gang of several pod sets starts"
    DOMAIN = "a gang starts in the one domain in which it has to be"
    GROUPS = "groups of pods start, each in a domain"
    GROWS = "grows"
    PRIORITY = "preempt by priority"
    RECLAIM = "preempt by reclaim"
    CONSOLIDATE = "preempt by consolidate"
    BETTER = "preempt by better"
    QUOTA = "preempt by quota"
    BUDGET = "preempt by budget"
    SHRINK_PRIORITY = "shrink by priority"
    SHRINK_RECLAIM = "shrink by reclaim"
    SHRINK_QUOTA = "shrink by quota"
    KEEPS = "room is kept until a time that is known"
    KEEPS_UNDATED = "room is kept until nobody knows when"
    FREES = "frees"

    LIMIT = "starts below a quota, and leaves some of it"
    LIMIT_USED_UP = "starts, and uses up what somebody may have"
    LIMIT_TOLD = "told that a quota is used up"
    GUARANTEE = "reclaimed from one who keeps what is guaranteed"
    FIRM = "waits, as what may not be preempted borrows nothing"
    LEAST_RUN = "spared, as it has not run for long enough"
    FIRM_SPARED = "spared, as it may not be preempted"
    KEPT_FROM = "starts beside room that is kept"
    PROMISE_DUE = "was promised room by now"
    PROMISE_STANDS = "waits on, and its promise stands"
    QUOTA_KEPT = "told that its quota is kept for older work of its project"
    QUOTA_LEFT = "starts beside quota that is kept in its project"
    RESERVED = "starts beside a reservation"
    RESERVED_ABOVE = "starts on what is reserved for a tenant above it"
    RESERVED_TOLD = "told that what it needs is reserved"
    RESERVED_RIGHTLY = "told so, and a reservation would lack it"
    RESERVED_EVICTS = "has others evicted beside a reservation"
    COVERED = "starts under a budget that covers it"
    COVERED_GROWTH = "grows under a budget that covers it"
    BUDGET_TOLD = "told that a budget is used up, or does not cover it"
    BUDGET_ON = "holds no devices, and goes on under a budget that stops what does"
    FIRM_STOPPED = "stopped by a budget though it may not be preempted"
    LANDS = "lands at once when it can"
    LANDS_LATER = "goes on having its landing"
    RESTS = "was moved today, and is not moved again"
    STAYS = "may move up, and nothing better is to be had"
    STAYS_FOR_OTHERS = "could move up, were nobody waiting for that"
    IDLE_ON = "idle, and not for too long"
    ENFORCED = "stays under a quota that is enforced"
    ENFORCED_ORDER = "stays, as one like it goes for a quota"
    SPARED = "stays, as one whose end does more harm goes for a quota"
    QUEUE_HELD = "told that its queue is held"
    GATE = "told that its gate is shut"
    HARDWARE_HELD = "told that hardware is held"
    NO_ROOM = "told of room that there is not"
    BY_MEMORY = "gets a share by memory"
    SLICE = "gets a slice"
    REPLICAS = "gets whole replicas"
    ISOLATED = "told of neighbours too near"
    UNPREEMPTED = "waits in a plan that takes nothing back"
    SLICES_GAINED = "moved so that another slice has a span"
    NODES_GAINED = "moved so that another node is free"


_TOLD = {
    ReasonCode.QUOTA_USED: Case.LIMIT_TOLD,
    ReasonCode.COHORT_USED: Case.LIMIT_TOLD,
    ReasonCode.RESERVED: Case.RESERVED_TOLD,
    ReasonCode.BUDGET_USED: Case.BUDGET_TOLD,
    ReasonCode.ISOLATION: Case.ISOLATED,
    ReasonCode.QUEUE_HELD: Case.QUEUE_HELD,
    ReasonCode.GATE: Case.GATE,
    ReasonCode.HARDWARE_HELD: Case.HARDWARE_HELD,
}


def decided(made: Plan) -> Iterator[Case]:
    """What the plan decides, and tells."""
    for admit in made.admits:
        yield Case.GANG if len(admit.places) > 1 else Case.STARTS
    for preempt in made.preempts:
        yield Case(f"preempt by {preempt.rule}")
    for shrink in made.shrinks:
        yield Case(f"shrink by {shrink.rule}")
    for keep in made.keeps:
        yield Case.KEEPS_UNDATED if keep.starts_at is None else Case.KEEPS
    yield from (Case.GROWS for _ in made.grows)
    yield from (Case.FREES for _ in made.frees)
    for reason in made.reasons().values():
        if reason.code in _TOLD:
            yield _TOLD[reason.code]
