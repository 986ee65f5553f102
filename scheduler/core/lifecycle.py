"""The states of a workload and the steps between them. Pure; `services.transition` applies it."""

from enum import StrEnum


class State(StrEnum):
    PENDING = "PENDING"
    ADMITTED = "ADMITTED"  # quota and placements reserved; pods are being created, gated
    BOUND = "BOUND"  # every pod's gate is open
    RUNNING = "RUNNING"  # every pod of the gang runs
    PREEMPTING = "PREEMPTING"  # placements are being taken back; returns to PENDING
    CANCELLING = "CANCELLING"  # its user stopped it; placements are being taken back
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.ADMITTED, State.CANCELLED, State.FAILED}),
    # Straight back to PENDING: its pods were lost with their node, and it is tried again.
    State.ADMITTED: frozenset(
        {State.BOUND, State.RUNNING, State.SUCCEEDED, State.FAILED, State.PREEMPTING,
         State.CANCELLING, State.PENDING}
    ),
    State.BOUND: frozenset(
        {State.RUNNING, State.SUCCEEDED, State.FAILED, State.PREEMPTING, State.CANCELLING,
         State.PENDING}
    ),
    State.RUNNING: frozenset(
        {State.SUCCEEDED, State.FAILED, State.PREEMPTING, State.CANCELLING, State.PENDING}
    ),
    # A victim may finish before its eviction reaches it.
    State.PREEMPTING: frozenset(
        {State.PENDING, State.SUCCEEDED, State.FAILED, State.CANCELLING}
    ),
    State.CANCELLING: frozenset({State.CANCELLED, State.SUCCEEDED, State.FAILED}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}  # fmt: skip

TERMINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
HOLDING = frozenset(set(State) - TERMINAL - {State.PENDING})
"""States in which a workload holds quota and placements."""
UNDER_WAY = frozenset(state for state in HOLDING if State.PREEMPTING in TRANSITIONS[state])
"""Those of HOLDING that nobody has asked to end."""


def allowed(before: State, after: State) -> bool:
    """Whether `before` → `after` is a legal step."""
    return after in TRANSITIONS[before]
