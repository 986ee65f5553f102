"""The faults of snapshots, told to operators: each once in the log, and all in the cycle's record.

What must not live here: how one is found (core/faults.py).
"""

import logging
from collections.abc import Iterable

from scheduler.core.plan import Fault

logger = logging.getLogger(__name__)

MOST = 20
"""How many new ones one cycle logs: a cluster that vanished leaves thousands."""

type _Key = tuple[str, str, str]
_logged: frozenset[_Key] = frozenset()  # of the last cycle of this process


def log(faults: Iterable[Fault]) -> None:
    """Log those that the last cycle did not have. Their numbers may change meanwhile."""
    global _logged
    now = {(fault.kind, fault.subject, fault.id): fault for fault in faults}
    new = [fault for key, fault in now.items() if key not in _logged]
    for fault in new[:MOST]:
        logger.error("snapshot: %s (%s)", fault.text, fault.kind)
    if len(new) > MOST:
        logger.error("snapshot: … and %d more faults", len(new) - MOST)
    _logged = frozenset(now)


def summary(faults: Iterable[Fault]) -> dict[str, dict[str, object]]:
    """By kind: how many there are, and the first."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.kind, []).append(fault)
    return {kind: {"count": len(of), "first": of[0].text} for kind, of in found.items()}
