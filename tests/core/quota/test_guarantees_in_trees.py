"""In random trees: what is guaranteed is had, by whom it is guaranteed to; nothing goes round."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.core.units import FlavorId, ProjectId
from tests.core.build import job, node, snapshot
from tests.core.drawn.fleets import LEAST_RUN_S
from tests.core.quota.trees import contested, trees
from tests.core.rounds import Evicted, carried_out
from tests.core.sweep.test_sweep import agree

POLICY = Policy()
H100 = FlavorId("h100")
MANY, FEW = settings(max_examples=300, deadline=None), settings(max_examples=100, deadline=None)


@MANY
@given(of=trees())
@example(of=contested(23921))
@example(of=contested(29760064))  # who is over only with what was promised in this plan gives
def test_in_a_tree_no_plan_breaks_an_invariant_and_the_sweep_plans_as_by_hand(
    of: Snapshot,
) -> None:
    assert violations(of, agree(of)) == ()
    agree(of, Policy(max_admits=2, max_preemptors=1))


@FEW
@given(of=trees())
@example(of=contested(26318))  # shrinks one gang for another
@example(of=contested(23921))  # its own project's lower work starts where firm work waits
def test_in_a_tree_no_victim_evicts_who_evicted_it_and_all_comes_to_rest(of: Snapshot) -> None:
    evicted, quiet = Evicted(), 0
    for _ in range(60):
        made = plan(of, POLICY)
        assert violations(of, made) == ()
        assert evicted.no_ring_with(made)
        of, moved = carried_out(of, made)
        quiet = 0 if moved else quiet + 1
        if quiet > LEAST_RUN_S // 60:
            return
    pytest.fail("still starting and evicting after 60 minutes")


@FEW
@given(of=trees(), data=st.data())
def test_who_asks_for_its_own_nominal_gets_it_whatever_else_was_started(
    of: Snapshot, data: st.DataObject
) -> None:
    """Work that may not be preempted included: it never holds what another is guaranteed."""
    nominal = {
        (queue.project, quota.flavor): quota.nominal_milli
        for queue in of.queues
        for quota in queue.quotas
    }
    quotas = [*(q.quotas for q in of.queues), *(c.quotas for c in of.cohorts)]
    guaranteed = sum(q.nominal_milli for rows in quotas for q in rows if q.flavor == H100)
    singles = [
        job(f"w{i}", project, priority=i % 3, submitted_at=i)
        for i, project in enumerate("abcdeabcdeabcdeabcde")
    ]
    singles = [replace(p, preemptible=data.draw(st.booleans())) for p in singles]
    of = replace(
        of,
        queues=tuple(replace(queue, min_run_time_s=0) for queue in of.queues),
        clusters=snapshot(nodes=[node("n1", guaranteed // 1000, cores=64)]).clusters,
        pending=tuple(singles),
        holding=(),
    )
    for _ in range(20):
        of, moved = carried_out(of, plan(of, POLICY))
    assert not moved
    used = {project: sum(1000 for h in of.holding if h.project == project) for project in "abcde"}
    for project in "abcde":
        least = min(nominal[ProjectId(project), H100], 4000)
        assert used[project] >= least, f"{project} has not what it is guaranteed"
