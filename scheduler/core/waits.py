"""What a workload waits for besides capacity: the ends of others, somebody's word, its own pods,
and the end of such as the database does not know."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnmetView:
    """What a workload waits for besides capacity: the ends of `count` others, `first` one of them,
    a workload or an array. Of those, `in_vain_count` have ended otherwise, and it is kept waiting
    until somebody releases it; `first` is one of these, if there are any."""

    count: int
    first: str
    in_vain_count: int = 0


@dataclass(frozen=True, slots=True)
class GateView:
    """What a workload waits for besides capacity: somebody's word. Of the `count` gates that are
    not open, the one that is told: whose word it is, since when that is waited for, and until
    when at most, None for ever."""

    name: str
    owner: str
    since: int
    deadline: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class GatheringView:
    """What a workload waits for besides capacity whose pods others make in its cluster: of the
    `wanted` that start together so many are not there."""

    missing: int
    wanted: int


@dataclass(frozen=True, slots=True)
class StraysView:
    """Of a workload that the database has as waiting, `count` pods of a later attempt run in
    `cluster`, by name: it was put back from a backup, and they could not be adopted. One cluster
    of those there are."""

    count: int
    cluster: str
