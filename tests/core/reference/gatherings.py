"""Work of several pod sets that has to be together, or had better be: how it is asked for, and
what of it is told from the beginning."""

from dataclasses import replace

from hypothesis import strategies as st

from scheduler.core.snapshot import (
    PendingView,
    PodSetView,
    SetTopologyView,
    TopologyView,
)
from tests.core.build import cpu_pods, job, pods
from tests.core.reference.machine import Fleet, a_pod_set, asked
from tests.core.reference.openings import leave, opening, own
from tests.core.reference.tried import Case

LEVELS = ("zone", "rack")


@st.composite
def gathering(draw: st.DrawFn) -> PendingView:
    """Pods with devices, often with one that leads them."""
    made = draw(asked(flavors=["h100"]))
    main = _together(made.pod_sets[0], draw)
    sets = [main]
    if draw(st.booleans()):
        flavor = draw(st.sampled_from(["h100", "cpu"]))
        lead = a_pod_set(flavor, most=draw(st.sampled_from([1, 1, 2])), least=1, size=1)
        sets.insert(draw(st.integers(0, 1)), lead)
    named = job("", made.project, *sets).pod_sets
    level = draw(st.sampled_from([None, None, *LEVELS]))
    required = draw(st.booleans())
    topology = None if level is None else TopologyView(level, required)
    return replace(made, pod_sets=named, topology=topology)


def _together(main: PodSetView, draw: st.DrawFn) -> PodSetView:
    """It and its name as a set; in groups where it has a number of pods that can be divided."""
    main = replace(main, id=pods().id)
    level = draw(st.sampled_from([None, None, *LEVELS]))
    if level is None:
        return main
    size = draw(st.sampled_from([None, 1, 2]))
    if size is not None:
        main = replace(main, count=2 * size, min_count=2 * size)
    within = SetTopologyView(level, draw(st.booleans()), str(main.id), size)
    return replace(main, topology=within)


def _within(pod_set: PodSetView, level: str, *, size: int | None = None) -> PodSetView:
    return replace(pod_set, topology=SetTopologyView(level, True, str(pod_set.id), size))


@opening(
    *(Case.GANG, Case.PART, Case.SEVERAL, Case.DOMAIN, Case.GROUPS, Case.NO_ROOM, Case.GROWS),
    *(Case.SHRINK_RECLAIM, Case.GUARANTEE),
)
def gathered(fleet: Fleet) -> None:
    """Seven nodes of three devices: in each zone a rack of two and one of one; one of the nodes is
    in no rack. Racks of different zones have the same names."""
    own(fleet, b=6, c=15)
    for made in (
        job("", "d", _within(pods(8, least=2), "rack")),  # it grows to what a rack has
        job("", "a", cpu_pods(name="lead"), pods(4), within="zone"),
        job("", "c", _within(pods(4), "rack", size=2)),
        job("", "a", pods(7), within="rack"),  # which has room for six
        job("", "d", pods(9, least=1)),
    ):
        fleet.ask(made)
        fleet.plan()
        fleet.plan()
    fleet.ask(job("", "b", pods(name="lead"), pods(3), within="rack"))
    fleet.plan()
    leave(fleet)
