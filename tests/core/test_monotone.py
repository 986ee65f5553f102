"""More nodes never take from anybody: what of that a greedy plan can promise.

Of pods of one size, without eviction, what starts on more nodes includes what starts on fewer: no
project is admitted less, the neediest included. Of several sizes no greedy plan holds it: a large
one that fits at last takes the quota of small ones.
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
