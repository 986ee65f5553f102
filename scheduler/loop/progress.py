"""How far an attempt has come, and what follows: a pure judgement over counts of its
placements."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.models import AttemptOutcome

MAX_FAILURES = 5
"""Tries that may be lost to the cluster before the workload is given up."""

# End reasons that are the cluster's doing, not the work's: the workload is tried again.
DELETED = "Deleted"  # it ended of its deletion, whoever asked for that: us, or who drains its node
LOST = frozenset(
    {DELETED, "PodGone", "NodeLost", "Evicted", "NodeShutdown", "Terminated", "Shutdown"}
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts over the placements of a live attempt. `reasons` are those of the failed ones."""

    attempt_id: UUID
    workload_id: UUID
    project_id: UUID
    state: State
    failures: int
    trouble: str
    total: int
    started: int
    released: int
    succeeded: int
    failed: int
    reasons: tuple[str, ...]
    exit_code: int | None
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:  # Any: a database row of mixed columns
        attempt_id, workload_id, project_id, state, *counts = row
        failures, trouble, total, started, released, succeeded, failed, reasons, *end = counts
        exit_code, started_at, ended_at = end
        return cls(
            attempt_id=attempt_id,
            workload_id=workload_id,
            project_id=project_id,
            state=State(state),
            failures=failures,
            trouble=trouble,
            total=total,
            started=started,
            released=released,
            succeeded=succeeded,
            failed=failed,
            reasons=tuple(sorted(reasons or ())),
            exit_code=exit_code,
            started_at=started_at,
            ended_at=ended_at,
        )

    @property
    def lost(self) -> bool:
        """Every failure was the cluster's doing."""
        return self.failed > 0 and LOST.issuperset(self.reasons)

    @property
    def loss(self) -> str:
        return f"lost: {', '.join(self.reasons)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`after` None moves nothing. `outcome` ends the attempt. `failed` counts as a lost try.
    `stop` asks for the end of the gang's remaining pods, and `trouble` says that the cluster broke
    it: those pods will fail of the stop, not of their work."""

    after: State | None = None
    why: str = ""
    at: datetime | None = None
    outcome: AttemptOutcome | None = None
    failed: bool = False
    stop: bool = False
    trouble: str = ""


def verdict(progress: Progress, *, at: datetime) -> Verdict | None:
    """What follows from the counts; None when nothing does."""
    if progress.released == progress.total:
        return _ended(progress, at)
    if progress.failed and progress.state in UNDER_WAY:
        return Verdict(stop=True, trouble=progress.loss if progress.lost else "")
    if progress.started == progress.total and progress.state in {State.ADMITTED, State.BOUND}:
        return Verdict(State.RUNNING, at=progress.started_at)
    return None


def _ended(progress: Progress, at: datetime) -> Verdict:
    ended_at = progress.ended_at or at
    if progress.succeeded == progress.total:
        # Also when it was being cancelled or preempted: the work was faster. What was told to stop
        # and exits 0 for that has not succeeded, and is not counted so.
        return Verdict(State.SUCCEEDED, at=ended_at, outcome=AttemptOutcome.SUCCEEDED)
    if progress.state == State.CANCELLING:
        return Verdict(State.CANCELLED, at=at, outcome=AttemptOutcome.CANCELLED)
    given_up = progress.failures + 1 >= MAX_FAILURES
    if progress.state == State.PREEMPTING and not progress.trouble:
        return Verdict(State.PENDING, "preempted", at=at, outcome=AttemptOutcome.PREEMPTED)
    if (progress.trouble or progress.lost) and not given_up:
        why = progress.trouble or progress.loss
        return Verdict(State.PENDING, why, at=at, outcome=AttemptOutcome.LOST, failed=True)
    # What was deleted beside the failed one tells nothing of why.
    reasons = [reason for reason in progress.reasons if reason != DELETED or progress.lost]
    why = progress.trouble or ", ".join(filter(None, reasons)) or "its work failed"
    if progress.exit_code:
        why += f" (exit code {progress.exit_code})"
    if progress.trouble or progress.lost:
        why += f"; given up after {MAX_FAILURES} tries"
    return Verdict(State.FAILED, why, at=ended_at, outcome=AttemptOutcome.FAILED)
