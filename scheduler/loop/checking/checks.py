"""The guard of admission: what a check finds stops it, until a later check finds nothing or an
operator accepts what was found. What runs goes on, is metered and can be cancelled.

What was accepted stays so as long as each check finds it, or a part of it, and nothing else. What
is the same is a matter of rules and rows, not of amounts, which every start and stop changes.

What must not live here: how a violation is found (invariants.py).
"""

import logging
from datetime import datetime
from time import perf_counter

from django.db import connection, transaction

from controlplane.audit import services as audit
from controlplane.kernel.errors import Conflict
from scheduler.loop import retention
from scheduler.loop.checking import invariants
from scheduler.loop.checking.rules import MOST, told
from scheduler.models import InvariantCheck
from scheduler.selectors import checks

logger = logging.getLogger(__name__)

ACTOR = "system:check_invariants"
STOPPING = frozenset({"P1", "P2", "P5", "P6"})
"""What one more admission could make worse. The rest tells of single workloads or of hardware."""
KEPT_DAYS = 14


def check(*, at: datetime, query_s: float | None = None) -> InvariantCheck:
    """Look for what breaks the rules about STOPPING, note it, and stop admission or let it go on.

    `query_s` is the time that one query may take, None any. Raises OperationalError when one
    takes longer; admission stays as it was.
    """
    begun = perf_counter()
    found = invariants.violations(about=STOPPING, query_s=query_s)
    keys = [violation.key for violation in found[: MOST + 1]]
    took_ms = round((perf_counter() - begun) * 1000)
    with transaction.atomic():
        before = _newest_locked()
        made = InvariantCheck.objects.create(
            at=at,
            took_ms=took_ms,
            violations=told(found),
            keys=keys,
            accepted_at=_accepted_at(keys, before),
        )
        stopped = checks.admission_stopped()  # by another, if that began later and ended first
        if stopped != (before is not None and before.stops):
            _record("admission.stop" if stopped else "admission.resume", made, at)
    if made.stops:
        logger.error("admission is stopped: %s", " ".join(made.violations))
    retention.prune(InvariantCheck, days=KEPT_DAYS)
    return made


def accept(*, at: datetime) -> InvariantCheck | None:
    """Let admission go on in spite of what the newest check found; what is new stops it again.

    None when admission is not stopped. Raises Conflict when it found more than MOST: nobody could
    tell what is new from what is not.
    """
    with transaction.atomic():
        newest = _newest_locked()
        if newest is None or not newest.stops:
            return None
        if len(newest.keys) > MOST:
            raise Conflict(
                f"More than {MOST} violations were found, too many to accept: repair some of them."
            )
        newest.accepted_at = at
        newest.save(update_fields=["accepted_at"])
        _record("admission.resume", newest, at)
    logger.warning("admission goes on: %d violations are accepted", len(newest.keys))
    return newest


def _accepted_at(keys: list[str], before: InvariantCheck | None) -> datetime | None:
    """When all of it was accepted; None for anything new."""
    if before is None or not 0 < len(keys) <= MOST or not set(keys) <= set(before.keys):
        return None
    return before.accepted_at


def _newest_locked() -> InvariantCheck | None:
    """Nobody else checks or accepts until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE scheduler_invariantcheck IN SHARE ROW EXCLUSIVE MODE")
    return checks.newest()


def _record(action: str, of: InvariantCheck, at: datetime) -> None:
    audit.record(
        actor=ACTOR,
        actor_name="check_invariants",
        at=at,
        entries=[
            audit.Entry(
                action=action,
                target_type="invariantcheck",
                target_id=of.id,
                after={"violations": of.violations, "accepted": of.accepted_at is not None},
            )
        ],
    )
