"""More nodes never take from anybody: what of that a greedy plan can promise.

Of pods of one size, without eviction, what starts on more nodes includes what starts on fewer: no
project is admitted less, the neediest included. Of several sizes no greedy plan holds it: a large
one that fits at last takes the quota of small ones.

Where only the neediest's own pods are of one size, it is admitted no less in sum as long as its
work comes first: it asks no more than it is guaranteed, at a higher priority. Others may then ask
for what they like, and its gangs may be of any length: what it starts is then its slots, filled in
order, and a gang that begins to fit is larger than all that it may keep from those behind it.
Behind others it may lose all, as the last test shows.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import NodeView, PendingView, QueueView
from tests.core.build import Quota, cohort, job, node, pods, queue, runs, snapshot

PROJECTS = ("a", "b", "c")
_QUOTAS = st.builds(
    Quota, st.integers(0, 4), st.sampled_from([None, 0, 2]), st.sampled_from([None, 0, 1])
)
_NODES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def _queues(draw: st.DrawFn) -> list[QueueView]:
    return [
        queue(
            project,
            tenant=draw(st.sampled_from(["lab", "other", ""])),
            weight=draw(st.integers(0, 3)),
            h100=draw(_QUOTAS),
        )
        for project in PROJECTS
    ]


@st.composite
def _jobs(draw: st.DrawFn) -> list[PendingView]:
    gpus = draw(st.integers(1, 2))
    return [
        job(f"w{i}", project, pods(gpus=gpus), priority=priority)
        for i, (project, priority) in enumerate(
            draw(st.lists(st.tuples(st.sampled_from(PROJECTS), st.integers(0, 2)), max_size=16))
        )
    ]


def _fleet(gpus: list[int], name: str) -> list[NodeView]:
    return [node(f"{name}{i}", gpus=each) for i, each in enumerate(gpus)]


@settings(deadline=None, max_examples=300)
@given(
    fewer=_NODES, more=_NODES, queues=_queues(), pending=_jobs(), busy=st.sampled_from(PROJECTS)
)
def test_what_starts_on_more_nodes_includes_what_starts_on_fewer(
    fewer: list[int],
    more: list[int],
    queues: list[QueueView],
    pending: list[PendingView],
    busy: str,
) -> None:
    nodes = _fleet(fewer, "n")
    few = snapshot(
        nodes=nodes,
        cohorts=[cohort("lab", parent="other", h100=Quota(0, borrow=2))],
        queues=queues,
        pending=pending,
        holding=[runs("old", busy, "n0/0")],
    )
    (now,) = few.clusters
    many = replace(few, clusters=(replace(now, nodes=(*nodes, *_fleet(more, "m"))),))
    first, second = (
        {admit.workload for admit in plan(of, Policy(preemption=False)).admits}
        for of in (few, many)
    )
    assert first <= second


@st.composite
def _anything(draw: st.DrawFn) -> list[PendingView]:
    """Of a, gangs of pods of one size before all others; of b and c pods of any."""
    gpus = draw(st.integers(1, 3))
    own = draw(st.lists(st.integers(1, 4), max_size=6))
    shapes = st.tuples(st.sampled_from("bc"), st.integers(1, 4), st.integers(1, 3))
    others = draw(st.lists(shapes, max_size=6))
    return [
        *(job(f"a{i}", "a", pods(n, gpus=gpus), priority=9) for i, n in enumerate(own)),
        *(job(f"o{i}", of, pods(n, gpus=each)) for i, (of, each, n) in enumerate(others)),
    ]


def _own(of: list[NodeView], pending: list[PendingView], queues: list[QueueView]) -> int:
    """GPUs that a starts on, in thousandths, when no room is kept for anybody."""
    made = plan(snapshot(nodes=of, queues=queues, pending=pending), Policy(preemption=False))
    places = [place for admit in made.admits for place in admit.places if admit.workload[0] == "a"]
    return sum(place.amount_milli for place in places)


@settings(deadline=None, max_examples=300)
@given(fewer=_NODES, more=_NODES, nominal=st.integers(0, 16), pending=_anything())
def test_who_comes_first_is_admitted_no_less_on_more_nodes_whatever_others_ask(
    fewer: list[int], more: list[int], nominal: int, pending: list[PendingView]
) -> None:
    queues = [queue("a", h100=72), queue("b", h100=nominal), queue("c", h100=nominal)]
    few = _fleet(fewer, "n")
    assert _own(few, pending, queues) <= _own([*few, *_fleet(more, "m")], pending, queues)


def test_behind_others_a_large_gang_that_fits_at_last_takes_it_all() -> None:
    queues = [queue("a", h100=8), queue("b", h100=8)]
    pending = [job("a0", "a", pods(gpus=1)), job("b0", "b", pods(2, gpus=4), priority=1)]
    few = _fleet([4], "n")
    assert _own(few, pending, queues) == 1000
    assert _own([*few, *_fleet([4], "m")], pending, queues) == 0
