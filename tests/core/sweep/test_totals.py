"""What a sweep's tables tell is free is what an index of the rooms tells."""

import pytest
from hypothesis import given, settings

from scheduler.core import cycle
from scheduler.core.fleet.draft import Draft
from scheduler.core.fleet.space import free_milli, largest_free_milli
from scheduler.core.policy import Policy
from scheduler.core.snapshot import FlavorView, Snapshot
from scheduler.core.units import ClusterId
from tests.core.build import job, node, pods, queue, snapshot
from tests.core.drawn.fleets import snapshots

ALL = Policy(max_admits=10**9)


class Silent:
    """Tells nothing, so that the index is asked."""

    def free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None:
        return None

    def largest_free_milli(self, *, cluster: ClusterId, flavor: FlavorView) -> int | None:
        return None


def planned(of: Snapshot) -> Draft:
    """As a plan with a sweep leaves it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", 0)
        return cycle.planned(of, ALL)[1].admission.draft


def told(draft: Draft, of: Snapshot) -> list[tuple[int | None, int | None]]:
    totals = draft.totals
    return [
        (
            totals.free_milli(cluster=cluster, flavor=flavor),
            totals.largest_free_milli(cluster=cluster, flavor=flavor),
        )
        for cluster in (draft.clusters if totals else ())
        for flavor in of.flavors
        if totals
    ]


def indexed(draft: Draft, of: Snapshot) -> list[tuple[int, int]]:
    draft.count_by(Silent())
    return [
        (
            free_milli(draft=draft, cluster=cluster, flavor=flavor),
            largest_free_milli(draft=draft, cluster=cluster, flavor=flavor),
        )
        for cluster in draft.clusters
        for flavor in of.flavors
    ]


def agree(draft: Draft, of: Snapshot) -> None:
    known = told(draft, of)
    for tables, index in zip(known, indexed(draft, of) if known else (), strict=True):
        assert tables in (index, (None, None))


@settings(deadline=None)
@given(snapshots(12))
def test_it_tells_of_each_flavor_what_an_index_does_or_nothing(of: Snapshot) -> None:
    agree(planned(of), of)


def test_a_plan_of_plain_work_needs_no_index() -> None:
    of = snapshot(
        nodes=[node("n1", 8), node("n2", 9)],
        queues=[queue("a", h100=40)],
        pending=[job(f"j{i}", "a", pods(gpus=2)) for i in range(8)] + [job("gang", "a", pods(4))],
    )
    draft = planned(of)
    assert (1000, 1000) in told(draft, of)
    assert not draft.world.has_index
    agree(draft, of)
    assert draft.world.has_index
