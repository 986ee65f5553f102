"""How far an attempt has come, and what follows: a pure judgement over counts of its
placements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from scheduler.core.failures import OWN, FailureClass, Retries, classify, describe, worst
from scheduler.core.held.losses import gpu_hours, lost_milli_s
from scheduler.core.lifecycle import UNDER_WAY, State
from scheduler.core.quota.equivalents import counts_milli
from scheduler.core.snapshot import FlavorKind
from scheduler.core.units import ONE_MILLI
from scheduler.models import AttemptOutcome


def sevenths_milli(held: Iterable[Sequence[str]]) -> int:
    """What amounts of flavors count, in thousandths of a seventh of a device: each is the flavor's
    kind, its model, its profile, and how many thousandths of it."""
    return sum(
        int(milli) * counts_milli(kind=FlavorKind(kind), model=model, profile=profile) // ONE_MILLI
        for kind, model, profile, milli in held
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts over the placements of a live attempt; those that it lost and does without are not
    counted. `most` is how many pods it may have. `reasons` are those of the failed ones,
    `exit_codes` what they exited with, but for those that were deleted. `node_down` is whether one
    of their nodes is gone, not ready or about to go, and `spot_lost` the name of a spot one that
    is gone or about to go: one that is not ready has failed, and may come back. `failure` and
    `trouble` are what was first seen to have broken it, if anything.
    `sevenths_milli` is what they hold, in thousandths of a seventh of a device. What is evicted
    runs on until `notice_until`, if it was given notice.

    `began_at` is when the least of each pod set had started, None before that.
    """

    attempt_id: UUID
    workload_id: UUID
    project_id: UUID
    state: State
    retries: Retries
    failures: int
    node_losses: int
    failure: FailureClass | None
    trouble: str
    notice_until: datetime | None
    most: int
    total: int
    released: int
    succeeded: int
    failed: int
    reasons: tuple[str, ...]
    exit_codes: tuple[int, ...]
    node_down: bool
    spot_lost: str | None
    began_at: datetime | None
    ended_at: datetime | None
    sevenths_milli: int
    checkpointed_at: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:  # Any: database columns
        """Of a row of `settle`'s query: its columns are called as the fields are."""
        told = dict(row)
        limit, on, codes = (told.pop(f"retry_{name}") for name in ("limit", "on", "exit_codes"))
        told["retries"] = Retries(limit, tuple(map(FailureClass, on)), tuple(codes))
        told["state"] = State(told["state"])
        told["failure"] = FailureClass(told["failure"]) if told["failure"] else None
        told["reasons"] = tuple(sorted(told["reasons"] or ()))
        told["exit_codes"] = tuple(sorted(told["exit_codes"] or ()))
        told["sevenths_milli"] = sevenths_milli(told.pop("held"))
        return cls(**told)

    def found(self) -> tuple[FailureClass, str]:
        """What broke it, in words too: as first seen, else by what is seen now."""
        if self.failure is not None:
            return self.failure, self.trouble
        classes = {each: classify(each, node_down=self.node_down) for each in self.reasons}
        failure = worst(classes.values())
        if failure is FailureClass.NODE_LOST and self.spot_lost:
            return failure, f"interrupted: spot node {self.spot_lost} was taken away"
        reasons = [reason for reason, each in classes.items() if each is failure]
        return failure, describe(failure, reasons=reasons, exit_codes=self.exit_codes)

    def lost_milli_s(self, *, at: datetime) -> int:
        """Thousandths of devices x seconds of work that its end `at` loses; a gang that never ran
        with its least has none."""
        return lost_milli_s(
            sevenths_milli=self.sevenths_milli,
            started_at=None if self.began_at is None else int(self.began_at.timestamp()),
            checkpointed_at=(
                None if self.checkpointed_at is None else int(self.checkpointed_at.timestamp())
            ),
            at=int((self.ended_at or at).timestamp()),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """`after` None moves nothing. `outcome` ends the attempt, of which `failure` and `trouble` are
    noted, and with `after` PENDING it counts as a failed try; `lost_milli_s` is what the end of
    work that was not done loses. `stop` asks for the end of the
    gang's remaining pods: they will fail of that, and not by themselves."""

    after: State | None = None
    why: str = ""
    at: datetime | None = None
    outcome: AttemptOutcome | None = None
    failure: FailureClass | None = None
    trouble: str = ""
    lost_milli_s: int = 0
    stop: bool = False


def verdict(progress: Progress, *, at: datetime) -> Verdict | None:
    """What follows from the counts; None when nothing does."""
    if progress.released == progress.total:
        return _ended(progress, at)
    if progress.failed and progress.state in UNDER_WAY:
        failure, trouble = progress.found()
        return Verdict(stop=True, failure=failure, trouble=trouble)
    if progress.failed and progress.notice_until is not None and at < progress.notice_until:
        return Verdict(stop=True)  # a part of it has ended already: the others wait for nothing
    if progress.began_at is not None and progress.state in {State.ADMITTED, State.BOUND}:
        return Verdict(State.RUNNING, at=progress.began_at)
    return None


def _ended(progress: Progress, at: datetime) -> Verdict:
    ended_at = progress.ended_at or at
    if progress.succeeded == progress.total:
        # Also when it was being cancelled or preempted: the work was faster. What was told to stop
        # and exits 0 for that has not succeeded, and is not counted so.
        return Verdict(State.SUCCEEDED, at=ended_at, outcome=AttemptOutcome.SUCCEEDED)
    if progress.state == State.CANCELLING:
        return Verdict(State.CANCELLED, at=at, outcome=AttemptOutcome.CANCELLED)
    loss_milli_s = progress.lost_milli_s(at=at)
    loss = f"; {gpu_hours(loss_milli_s)} GPU-hours of work lost" if loss_milli_s else ""
    if progress.state == State.PREEMPTING and progress.failure is None:
        return Verdict(
            State.PENDING,
            f"preempted{loss}",
            at,
            AttemptOutcome.PREEMPTED,
            lost_milli_s=loss_milli_s,
        )
    failure, trouble = progress.found()
    refusal = progress.retries.refusal(
        failure,
        exit_codes=progress.exit_codes,
        failures=progress.failures,
        node_losses=progress.node_losses,
    )
    outcome = AttemptOutcome.FAILED if refusal or failure in OWN else AttemptOutcome.LOST
    return Verdict(
        State.FAILED if refusal else State.PENDING,
        "; ".join(filter(None, [trouble, refusal])) + loss,
        ended_at if refusal else at,
        outcome,
        failure,
        trouble,
        loss_milli_s,
    )
