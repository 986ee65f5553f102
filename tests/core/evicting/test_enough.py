"""A search that can't find enough devices is not begun; every other is, and finds the same."""

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.core.cycle import plan
from scheduler.core.evicting import preempt
from scheduler.core.evicting.enough import are_enough
from scheduler.core.fleet.draft import Draft
from scheduler.core.held.victims import Held
from scheduler.core.policy import Policy
from scheduler.core.quota.equivalents import Parts
from scheduler.core.request import Requests
from scheduler.core.snapshot import HoldingView, Isolation, PodSetView, Snapshot
from scheduler.core.units import ClusterId
from tests.core.build import A30, T4, job, node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots

NODES = (
    node("n1", gpus=4),
    node("n2", gpus=2, model=A30),
    node("n3", gpus=1, model=T4, shares=Isolation.MEMORY),
)
FULL = [runs("own", "a", "n1/0", "n1/1"), runs("rest", "b", "n1/2", "n1/3")]


def told(asked: PodSetView, holding: list[HoldingView], *gone: str) -> bool:
    """Whether there would be enough for it, if all of these went."""
    of = snapshot(nodes=NODES, queues=[queue("a", h100=9)], holding=holding, pending=[])
    draft = Draft(snapshot=of, holding=of.holding)
    request = Requests(flavors=draft.flavors, book=draft.book).of(job("w", "a", asked))
    parts = Parts(flavors=of.flavors, queues=of.queues)
    return are_enough(
        soon=draft,
        option=request.options[0],
        cluster=ClusterId("c1"),
        evictable=lambda: [Held(held, parts=parts) for held in holding if held.id in gone],
    )


def test_what_is_free_and_what_is_given_count_together() -> None:
    assert not told(pods(2), FULL)
    assert told(pods(2), FULL, "own")
    assert not told(pods(3), FULL, "own")
    assert told(pods(4), FULL, "own", "rest")
    assert told(pods(2), FULL[:1])


def test_devices_of_another_model_do_not_count() -> None:
    holding = [*FULL, runs("other", "a", "n2/0", "n2/1", flavor="a30")]
    assert not told(pods(1), holding, "other")


def test_a_device_that_is_held_in_part_counts_whole() -> None:
    holding = [runs("part", "a", "n3/0", flavor="t4share", span=(0, 100), amount=0.1)]
    assert not told(pods(1, flavors="t4"), holding)
    assert told(pods(1, flavors="t4"), holding, "part")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(snapshots(12))
def test_the_plan_is_the_one_in_which_every_search_is_begun(
    monkeypatch: pytest.MonkeyPatch, of: Snapshot
) -> None:
    made = plan(of, Policy())
    with monkeypatch.context() as patched:
        patched.setattr(preempt, "are_enough", lambda **_: True)
        assert plan(of, Policy()) == made
