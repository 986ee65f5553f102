"""What follows from how far an attempt has come: the whole table."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from scheduler.core.failures import NODE_LOSSES, RETRIES, FailureClass, Retries
from scheduler.core.lifecycle import State
from scheduler.loop.observing.progress import Progress, Verdict, verdict
from scheduler.models import AttemptOutcome
from tests.factories import AT

STARTED = AT + timedelta(minutes=1)
ENDED = AT + timedelta(minutes=2)
NOW = AT + timedelta(minutes=3)
SAVED = ENDED - timedelta(seconds=15)
ID = UUID(int=1)


def seen(
    state: State = State.RUNNING,
    *,
    total: int = 3,
    started: int = 3,
    ok: int = 0,
    failed: int = 0,
    reasons: tuple[str, ...] = (),
    retries: Retries = RETRIES,
    failures: int = 0,
    node_losses: int = 0,
    known: tuple[FailureClass, str] | None = None,
    exit_codes: tuple[int, ...] = (),
    node_down: bool = False,
    spot_lost: str | None = None,
    held: int = 0,
    saved: bool = False,
    noticed: timedelta | None = None,
) -> Progress:
    """Of `total` pods that many started, succeeded and failed; those that ended are released."""
    return Progress(
        attempt_id=ID, workload_id=ID, project_id=ID, state=state, retries=retries,
        failures=failures, node_losses=node_losses, failure=known[0] if known else None,
        trouble=known[1] if known else "", most=total, total=total, released=ok + failed,
        succeeded=ok, failed=failed, reasons=reasons, exit_codes=exit_codes, node_down=node_down,
        spot_lost=spot_lost,
        began_at=STARTED if started == total else None, ended_at=ENDED if ok + failed else None,
        sevenths_milli=7000 * held, checkpointed_at=SAVED if saved else None,
        notice_until=None if noticed is None else NOW + noticed,
    )  # fmt: skip


def again(
    failure: FailureClass, trouble: str, outcome: AttemptOutcome = AttemptOutcome.LOST
) -> Verdict:
    return Verdict(State.PENDING, trouble, NOW, outcome, failure, trouble)


def over(failure: FailureClass, trouble: str, why: str = "") -> Verdict:
    why = why or f"not tried again: its retries do not include {failure}"
    return Verdict(
        State.FAILED, f"{trouble}; {why}", ENDED, AttemptOutcome.FAILED, failure, trouble
    )


PREEMPTED = Verdict(State.PENDING, "preempted", at=NOW, outcome=AttemptOutcome.PREEMPTED)
REFUSED = (FailureClass.REFUSED, "refused")
LOST = (FailureClass.NODE_LOST, "its node was lost: NodeLost")
CODES = Retries(limit=2, exit_codes=(42, 43))
CASES: dict[str, tuple[Progress, Verdict | None]] = {
    "some run": (seen(State.BOUND, started=2), None),
    "all run": (seen(State.BOUND), Verdict(State.RUNNING, at=STARTED)),
    "all run before the dispatcher has said so": (
        seen(State.ADMITTED), Verdict(State.RUNNING, at=STARTED),
    ),
    "all run still": (seen(State.RUNNING), None),
    "all run of what is being taken back": (seen(State.PREEMPTING), None),
    "some are done": (seen(ok=2), None),
    "all are done": (
        seen(ok=3), Verdict(State.SUCCEEDED, at=ENDED, outcome=AttemptOutcome.SUCCEEDED),
    ),
    "all are done before it was cancelled": (
        seen(State.CANCELLING, ok=3),
        Verdict(State.SUCCEEDED, at=ENDED, outcome=AttemptOutcome.SUCCEEDED),
    ),
    "all are done before it was preempted": (
        seen(State.PREEMPTING, ok=3),
        Verdict(State.SUCCEEDED, at=ENDED, outcome=AttemptOutcome.SUCCEEDED),
    ),
    "one failed": (
        seen(failed=1, reasons=("Error",), exit_codes=(3,)),
        Verdict(
            stop=True, failure=FailureClass.EXIT_CODE, trouble="its work failed: exit code 3"
        ),
    ),
    "one was lost": (
        seen(failed=1, reasons=("NodeLost",)),
        Verdict(stop=True, failure=LOST[0], trouble=LOST[1]),
    ),
    "one failed of what ends anyway": (
        seen(State.CANCELLING, failed=1, reasons=("Error",)), None,
    ),
    "the work failed": (
        seen(ok=2, failed=1, reasons=("Error",), exit_codes=(3,)),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 3"),
    ),
    "the work failed and the rest was gone": (
        seen(failed=3, reasons=("Error", "PodGone"), exit_codes=(1,)),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 1"),
    ),
    "the work failed without a word": (
        seen(total=1, started=1, failed=1, reasons=("",)),
        over(FailureClass.EXIT_CODE, "its work failed"),
    ),
    "the work failed and the rest was stopped for it": (
        seen(
            failed=3, reasons=("Error", "NodeLost"), exit_codes=(3,),
            known=(FailureClass.EXIT_CODE, "its work failed: exit code 3"),
        ),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 3"),
    ),
    "the work failed and the rest was deleted for it": (
        seen(failed=3, reasons=("Deleted", "Error"), exit_codes=(2,)),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 2"),
    ),
    "it ran out of memory": (
        seen(failed=3, reasons=("Error", "OOMKilled"), exit_codes=(1, 137)),
        over(FailureClass.OUT_OF_MEMORY, "out of memory: OOMKilled; exit code 1, 137"),
    ),
    "it failed in a way that is tried again": (
        seen(failed=3, reasons=("Error",), exit_codes=(42, 43), retries=CODES, failures=1),
        again(
            FailureClass.EXIT_CODE, "its work failed: exit code 42, 43", AttemptOutcome.FAILED
        ),
    ),
    "one exit code of several is not tried again": (
        seen(failed=3, reasons=("Error",), exit_codes=(1, 42), retries=CODES),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 1, 42"),
    ),
    "what is tried again is used up": (
        seen(failed=3, reasons=("Error",), exit_codes=(42,), retries=CODES, failures=2),
        over(
            FailureClass.EXIT_CODE, "its work failed: exit code 42", "given up after 3 tries"
        ),
    ),
    "a node was lost": (
        seen(failed=3, reasons=("NodeLost", "PodGone")), again(*LOST),
    ),
    "pods are gone from a node that is down": (
        seen(failed=3, reasons=("PodGone",), node_down=True),
        again(FailureClass.NODE_LOST, "its node was lost: PodGone"),
    ),
    "a spot node was taken away": (
        seen(failed=3, reasons=("EvictionByEvictionAPI",), node_down=True, spot_lost="n1"),
        again(FailureClass.NODE_LOST, "interrupted: spot node n1 was taken away"),
    ),
    "a pod's own failure on a spot node that goes": (
        seen(failed=3, reasons=("OOMKilled",), node_down=True, spot_lost="n1"),
        over(
            FailureClass.OUT_OF_MEMORY,
            "out of memory: OOMKilled",
            "not tried again: its retries do not include out-of-memory",
        ),
    ),
    "a node was lost, and the rest of the gang stopped for it": (
        seen(failed=3, reasons=("Error", "NodeLost"), exit_codes=(143,), known=LOST),
        again(*LOST),
    ),
    "a node was lost when all other retries are used up": (
        seen(failed=3, reasons=("NodeLost",), failures=RETRIES.limit, node_losses=NODE_LOSSES - 1),
        again(*LOST),
    ),
    "a node was lost for the last time": (
        seen(failed=3, reasons=("NodeLost",), node_losses=NODE_LOSSES),
        over(*LOST, "given up after 21 tries"),
    ),
    "a node was lost of what is never tried again": (
        seen(failed=3, reasons=("NodeLost",), retries=Retries(on=())), over(*LOST),
    ),
    "the cluster did not take it": (
        seen(State.PREEMPTING, started=0, failed=3, reasons=("NeverStarted",), known=REFUSED),
        again(*REFUSED),
    ),
    "the cluster did not take it for the last time": (
        seen(
            State.PREEMPTING, started=0, failed=3, reasons=("NeverStarted",), known=REFUSED,
            failures=RETRIES.limit,
        ),
        over(*REFUSED, "given up after 5 tries"),
    ),
    "it could not start, and was taken back": (
        seen(
            State.PREEMPTING, started=0, failed=3, reasons=("Deleted",),
            known=(FailureClass.START_ERROR, "no such image"),
        ),
        over(FailureClass.START_ERROR, "no such image"),
    ),
    "preempted": (
        seen(State.PREEMPTING, failed=3, reasons=("Error",), exit_codes=(143,)), PREEMPTED,
    ),
    "preempted, and exited 0 on its deletion": (
        seen(State.PREEMPTING, ok=2, failed=1, reasons=("Deleted",), exit_codes=(0,)), PREEMPTED,
    ),
    "preempted after its work had failed": (
        seen(
            State.PREEMPTING, failed=3, reasons=("Error",), exit_codes=(3,),
            known=(FailureClass.EXIT_CODE, "its work failed: exit code 3"),
        ),
        over(FailureClass.EXIT_CODE, "its work failed: exit code 3"),
    ),
    "deleted by somebody else": (
        seen(failed=3, reasons=("Deleted",)),
        again(FailureClass.EVICTED, "its pods were taken away: Deleted"),
    ),
    "preempted however often": (
        seen(State.PREEMPTING, failed=3, reasons=("Error",), failures=RETRIES.limit), PREEMPTED,
    ),
    "preempted when half of it was done": (
        seen(State.PREEMPTING, ok=2, failed=1, reasons=("Error",)), PREEMPTED,
    ),
    "one has ended of what was given notice": (
        seen(State.PREEMPTING, failed=1, reasons=("Error",), noticed=timedelta(seconds=1)),
        Verdict(stop=True),
    ),
    "one has ended of what was given notice until now": (
        seen(State.PREEMPTING, failed=1, reasons=("Error",), noticed=timedelta()), None,
    ),
    "all have ended of what was given notice": (
        seen(State.PREEMPTING, failed=3, reasons=("Error",), noticed=timedelta(seconds=1)),
        PREEMPTED,
    ),
    "cancelled": (
        seen(State.CANCELLING, failed=3, reasons=("PodGone",)),
        Verdict(State.CANCELLED, at=NOW, outcome=AttemptOutcome.CANCELLED),
    ),
    "cancelled when the cluster did not take it": (
        seen(State.CANCELLING, failed=3, reasons=("NeverStarted",), known=REFUSED),
        Verdict(State.CANCELLED, at=NOW, outcome=AttemptOutcome.CANCELLED),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("progress", "follows"), CASES.values(), ids=CASES.keys())
def test_when(progress: Progress, follows: Verdict | None) -> None:
    assert verdict(progress, at=NOW) == follows


def lost(**of: Any) -> tuple[int, str]:  # Any: as `seen`
    found = verdict(seen(failed=3, held=2, **of), at=NOW)
    assert found is not None
    return found.lost_milli_s, found.why.rpartition("; ")[2]


def test_the_end_of_unfinished_work_loses_what_ran_since_it_was_saved() -> None:
    """Two devices for a minute, the last 15 s of which are not saved."""
    preempted = {"state": State.PREEMPTING, "reasons": ("Deleted",)}
    assert lost(**preempted) == (2000 * 60, "0.034 GPU-hours of work lost")
    assert lost(**preempted, saved=True) == (2000 * 15, "0.009 GPU-hours of work lost")
    assert lost(reasons=("NodeLost",)) == (2000 * 60, "0.034 GPU-hours of work lost")
    assert lost(reasons=("Error",)) == (2000 * 60, "0.034 GPU-hours of work lost")


def test_what_was_done_or_never_ran_or_was_cancelled_loses_nothing() -> None:
    for told in (
        seen(ok=3, held=2),
        seen(State.CANCELLING, failed=3, reasons=("Deleted",), held=2),
        seen(State.PREEMPTING, started=2, failed=3, reasons=("Deleted",), held=2),
    ):
        found = verdict(told, at=NOW)
        assert found is not None
        assert (found.lost_milli_s, "lost" in found.why) == (0, False)
