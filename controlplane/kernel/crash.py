"""Named crash points: `crash("D3")` is a no-op unless a test armed that point by BERTH_CRASH.

The names are those of the fault programme: A submit, B plan, D dispatch, O observe, E evict,
G grow and shrink, M meter, X cancel, C collect, R recut, L requeue of what is lost, N ask for
nodes, W what a cluster can, as a probe sees, T tell people.
BERTH_CRASH="D3" kills this process (SIGKILL, no clean-up) at its first pass; "D3:4" at its fourth.
"""

import os
import signal

_point = ""
_left = 0


def arm(spec: str) -> None:
    """What BERTH_CRASH does, for a process that was forked; "" disarms."""
    global _point, _left
    _point, _, count = spec.partition(":")
    _left = int(count or 1)


def crash(point: str) -> None:
    """Die here if this point is armed. In production the comparison with "" is all it costs."""
    global _left
    if point != _point:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("BERTH_CRASH", ""))
