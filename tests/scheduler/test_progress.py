"""What follows from how far an attempt has come: the whole table."""

from datetime import timedelta
from uuid import UUID

import pytest

from scheduler.core.lifecycle import State
from scheduler.loop.progress import MAX_FAILURES, Progress, Verdict, verdict
from scheduler.models import AttemptOutcome
from tests.factories import AT

STARTED = AT + timedelta(minutes=1)
ENDED = AT + timedelta(minutes=2)
NOW = AT + timedelta(minutes=3)
ID = UUID(int=1)


def seen(
    state: State = State.RUNNING,
    *,
    total: int = 3,
    started: int = 3,
    ok: int = 0,
    failed: int = 0,
    reasons: tuple[str, ...] = (),
    failures: int = 0,
    trouble: str = "",
    exit_code: int | None = None,
) -> Progress:
    """Of `total` pods that many started, succeeded and failed; those that ended are released."""
    return Progress(
        attempt_id=ID, workload_id=ID, project_id=ID, state=state, failures=failures,
        trouble=trouble, total=total, started=started, released=ok + failed, succeeded=ok,
        failed=failed, reasons=reasons, exit_code=exit_code,
        started_at=STARTED if started else None, ended_at=ENDED if ok + failed else None,
    )  # fmt: skip


LAST = MAX_FAILURES - 1
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
    "one failed": (seen(failed=1, reasons=("Error",)), Verdict(stop=True)),
    "one was lost": (
        seen(failed=1, reasons=("NodeLost",)), Verdict(stop=True, trouble="lost: NodeLost"),
    ),
    "one failed of what ends anyway": (
        seen(State.CANCELLING, failed=1, reasons=("Error",)), None,
    ),
    "the work failed": (
        seen(ok=2, failed=1, reasons=("Error",), exit_code=3),
        Verdict(
            State.FAILED, "Error (exit code 3)", at=ENDED, outcome=AttemptOutcome.FAILED
        ),
    ),
    "the work failed and the rest was gone": (
        seen(failed=3, reasons=("Error", "PodGone"), exit_code=1),
        Verdict(
            State.FAILED, "Error, PodGone (exit code 1)", at=ENDED, outcome=AttemptOutcome.FAILED
        ),
    ),
    "the work failed without a word": (
        seen(total=1, started=1, failed=1, reasons=("",)),
        Verdict(State.FAILED, "its work failed", at=ENDED, outcome=AttemptOutcome.FAILED),
    ),
    "a node was lost": (
        seen(failed=3, reasons=("NodeLost", "PodGone")),
        Verdict(
            State.PENDING, "lost: NodeLost, PodGone", at=NOW,
            outcome=AttemptOutcome.LOST, failed=True,
        ),
    ),
    "a node was lost, and the rest of the gang stopped for it": (
        seen(failed=3, reasons=("Error", "NodeLost"), exit_code=143, trouble="lost: NodeLost"),
        Verdict(
            State.PENDING, "lost: NodeLost", at=NOW, outcome=AttemptOutcome.LOST, failed=True
        ),
    ),
    "a node was lost for the last time": (
        seen(failed=3, reasons=("NodeLost",), failures=LAST),
        Verdict(
            State.FAILED, "NodeLost; given up after 5 tries", at=ENDED,
            outcome=AttemptOutcome.FAILED,
        ),
    ),
    "the cluster did not take it": (
        seen(State.PREEMPTING, started=0, failed=3, reasons=("NeverStarted",), trouble="refused"),
        Verdict(State.PENDING, "refused", at=NOW, outcome=AttemptOutcome.LOST, failed=True),
    ),
    "the cluster did not take it for the last time": (
        seen(
            State.PREEMPTING, started=0, failed=3, reasons=("NeverStarted",), trouble="refused",
            failures=LAST,
        ),
        Verdict(
            State.FAILED, "refused; given up after 5 tries", at=ENDED,
            outcome=AttemptOutcome.FAILED,
        ),
    ),
    "preempted": (
        seen(State.PREEMPTING, failed=3, reasons=("Error",), exit_code=143),
        Verdict(State.PENDING, "preempted", at=NOW, outcome=AttemptOutcome.PREEMPTED),
    ),
    "preempted, and exited 0 on its deletion": (
        seen(State.PREEMPTING, ok=2, failed=1, reasons=("Deleted",), exit_code=0),
        Verdict(State.PENDING, "preempted", at=NOW, outcome=AttemptOutcome.PREEMPTED),
    ),
    "deleted by somebody else": (
        seen(failed=3, reasons=("Deleted",)),
        Verdict(
            State.PENDING, "lost: Deleted", at=NOW, outcome=AttemptOutcome.LOST, failed=True
        ),
    ),
    "the work failed and the rest was deleted for it": (
        seen(failed=3, reasons=("Deleted", "Error"), exit_code=2),
        Verdict(
            State.FAILED, "Error (exit code 2)", at=ENDED, outcome=AttemptOutcome.FAILED
        ),
    ),
    "preempted however often": (
        seen(State.PREEMPTING, failed=3, reasons=("Error",), failures=LAST),
        Verdict(State.PENDING, "preempted", at=NOW, outcome=AttemptOutcome.PREEMPTED),
    ),
    "preempted when half of it was done": (
        seen(State.PREEMPTING, ok=2, failed=1, reasons=("Error",)),
        Verdict(State.PENDING, "preempted", at=NOW, outcome=AttemptOutcome.PREEMPTED),
    ),
    "cancelled": (
        seen(State.CANCELLING, failed=3, reasons=("PodGone",)),
        Verdict(State.CANCELLED, at=NOW, outcome=AttemptOutcome.CANCELLED),
    ),
    "cancelled when the cluster did not take it": (
        seen(State.CANCELLING, failed=3, reasons=("NeverStarted",), trouble="refused"),
        Verdict(State.CANCELLED, at=NOW, outcome=AttemptOutcome.CANCELLED),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("progress", "follows"), CASES.values(), ids=CASES.keys())
def test_when(progress: Progress, follows: Verdict | None) -> None:
    assert verdict(progress, at=NOW) == follows
