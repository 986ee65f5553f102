"""The four modes of work: whether it may be stopped for others, and whether it comes and goes."""

from dataclasses import replace
from enum import StrEnum

from scheduler.services.specs import WorkloadSpec


class Mode(StrEnum):
    """The least is `min_count` of each pod set; what it has beyond that comes and goes."""

    PREEMPTIBLE = "preemptible"  # all of it starts, and stops for others, as one
    ELASTIC = "elastic"  # gives up what is beyond its least first, then all of it
    SEMI = "semi-preemptible"  # keeps its least, gives up what is beyond
    FIRM = "non-preemptible"  # keeps all of it

    @property
    def preemptible(self) -> bool:
        """Whether all of it may be stopped. What may not stays in what is guaranteed."""
        return self in (Mode.PREEMPTIBLE, Mode.ELASTIC)

    @property
    def elastic(self) -> bool:
        """Whether it has pods beyond its least."""
        return self in (Mode.ELASTIC, Mode.SEMI)


def mode(*, preemptible: bool, elastic: bool) -> Mode:
    """Of work that may be stopped, and has pods beyond its least."""
    return next(one for one in Mode if (one.preemptible, one.elastic) == (preemptible, elastic))


def of(spec: WorkloadSpec) -> Mode:
    """The mode that it asks for."""
    return mode(preemptible=spec.preemptible, elastic=_elastic(spec))


def within(spec: WorkloadSpec, mode: Mode) -> WorkloadSpec | None:
    """The same work in that mode; None where that asks for a least, and it has none."""
    if mode.elastic and not _elastic(spec):
        return None
    sets = spec.pod_sets
    if not mode.elastic:
        sets = tuple(replace(pod_set, min_count=pod_set.count) for pod_set in sets)
    moves = spec.move_to_better and mode.preemptible
    return replace(spec, pod_sets=sets, preemptible=mode.preemptible, move_to_better=moves)


def _elastic(spec: WorkloadSpec) -> bool:
    return any(pod_set.min_count < pod_set.count for pod_set in spec.pod_sets)
