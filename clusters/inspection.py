"""What a cluster says of one pod: its events and the end of its log, as a port tells them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

MOST_EVENTS = 50
LOG_KIB = 64
"""The last of a log, at most."""


@dataclass(frozen=True, slots=True)
class EventReport:
    """One of the cluster's events of a pod. `at` is when it was last seen, None where that is not
    said, `count` how often, `component` who says so, `is_warning` whether it is a warning by the
    cluster's word."""

    at: datetime | None
    reason: str
    said: str
    count: int
    component: str
    is_warning: bool


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a container's log, without what no page can show; `is_cut` where there may be
    more before it."""

    text: str
    is_cut: bool


class InspectionPort(Protocol):
    """A part of `ClusterPort`, for which a cluster may give no right: then both raise
    ClusterError(FORBIDDEN)."""

    def read_events(self, *, namespace: str, uid: str) -> Sequence[EventReport]:
        """Of the pod of that uid, the latest first, MOST_EVENTS at most."""
        ...

    def read_log(self, *, namespace: str, name: str, uid: str) -> LogTail:
        """Of the pod's first container, LOG_KIB at most; empty before it has a node. Raises
        ClusterError: NOT_FOUND when it is gone, or another pod has its name; INVALID while the
        container has not started on its node."""
        ...
