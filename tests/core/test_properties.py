"""What holds of every plan, on random fleets."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import never_admissible, plan
from scheduler.core.explaining.whatif import would_start
from scheduler.core.fleet.draft import Draft
from scheduler.core.laws.invariants import violations
from scheduler.core.node.fit import Room, let_in
from scheduler.core.plan import Hold, Place
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode, describe
from scheduler.core.simulating.estimate import forecast
from scheduler.core.snapshot import HeldView, NodeView, Snapshot, TopologyView
from scheduler.core.units import NodeId, ProjectId
from tests.core.build import BY_NAME, decide, holds
from tests.core.drawn.fleets import LEAST_RUN_S, fleet, jobs, shuffled, snapshots
from tests.core.reference.brute import domains, everywhere
from tests.core.rounds import Evicted, carried_out

POLICY = Policy()
FEW, MANY = settings(max_examples=100, deadline=None), settings(max_examples=300, deadline=None)


@MANY
@given(of=snapshots(), preemption=st.booleans())
def test_no_plan_breaks_an_invariant(of: Snapshot, preemption: bool) -> None:
    assert violations(of, plan(of, Policy(preemption=preemption))) == ()


@MANY
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_the_plan_is_the_same_whatever_the_order_of_the_input(of: Snapshot, seed: int) -> None:
    mixed = shuffled(of, seed)
    assert plan(mixed, POLICY) == plan(of, POLICY)
    run_times = {ProjectId("a"): (10, 50, 400), ProjectId("b"): (5,)}
    first, second = (
        forecast(snapshot=one, policy=POLICY, run_times=run_times, passes=3, seed=7)
        for one in (of, mixed)
    )
    assert first == second


def _rooms(of: Snapshot, holders: Iterable[HeldView | Place]) -> dict[NodeId, Room]:
    rooms = {n.id: Room(node=n) for c in of.clusters for n in c.nodes}
    for holder in holders:
        if holder.node in rooms:
            rooms[holder.node].take(holder=holder, flavor=BY_NAME.get(holder.flavor))
    return rooms


@MANY
@given(of=snapshots())
def test_every_place_fits_when_the_applier_asks_again(of: Snapshot) -> None:
    rooms = _rooms(of, [p for h in of.holding for p in h.placements])
    for admit in plan(of, POLICY).admits:
        assert let_in(places=admit.places, rooms=rooms, flavors=BY_NAME)


@MANY
@given(of=snapshots())
def test_what_is_held_for_want_of_room_fits_on_no_node_by_itself(of: Snapshot) -> None:
    """Brute force: each pod of a held single on each node, at every span, is refused."""
    made = decide(of, preemption=False)
    held = [p for h in of.holding for p in h.placements]
    rooms = _rooms(of, [*held, *(p for a in made.plan.admits for p in a.places)])
    usable = [n for c in of.clusters if c.usable for n in c.nodes]
    for waiting in of.pending:
        hold = made.holds.get(waiting.id)
        (*_, pod_set) = waiting.pod_sets
        single = len(waiting.pod_sets) == 1 and pod_set.min_count == 1 and pod_set.gpu_count == 1
        no_room = (ReasonCode.NO_FIT, ReasonCode.NO_FREE_CAPACITY, ReasonCode.EXCEEDS_CAPACITY)
        if hold is None or hold.reason.code not in no_room or not single or waiting.clusters:
            continue
        flavor = BY_NAME[pod_set.flavors[0]]
        if flavor.name != dict(hold.reason.numbers)["flavor"]:
            continue
        own = pod_set.topology
        wish = None if own is None else TopologyView(own.level, own.required)
        for on in _in_both(of, usable, waiting.topology, wish):
            for place in everywhere(on, waiting.pod_sets[0], flavor.id):
                assert rooms[on.id].misfit(place=place, flavor=flavor) is not None


def _in_both(of: Snapshot, usable: list[NodeView], *asked: TopologyView | None) -> list[NodeView]:
    """The nodes that one pod may be on by all of these."""
    wishes = [each or TopologyView("", required=False) for each in asked]
    rooms = [list(chain.from_iterable(domains(of, usable, each))) for each in wishes]
    return [node for node in usable if all(node in room for room in rooms)]


@FEW
@given(data=st.data())
def test_a_rollback_restores_everything(data: st.DataObject) -> None:
    of = data.draw(snapshots())
    draft = Draft(snapshot=of, holding=of.holding, packs=True)
    before = _state(draft, of)
    mark = draft.checkpoint()
    held = [(h.project, p) for h in of.holding for p in h.placements]
    for project, placement in (
        data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []
    ):
        draft.remove(project=project, holder=placement)
    inner, middle = draft.checkpoint(), _state(draft, of)
    for admit in plan(of, POLICY).admits:
        for place in admit.places:
            draft.add(project=ProjectId("a"), holder=place)
    draft.rollback(inner)
    assert _state(draft, of) == middle
    draft.rollback(mark)
    assert _state(draft, of) == before


def _state(draft: Draft, of: Snapshot) -> object:
    rooms = [
        (node, r.cpu_milli, r.memory_mib, dict(r.taken), set(r.media))
        for node, r in sorted(draft.rooms.items())
    ]
    return rooms, draft.book.usage(), draft.index.pools(), _seats(draft, of)


def _seats(draft: Draft, of: Snapshot) -> list[object]:
    """Where each kind of pod would be packed."""
    return [
        found and (found[0].node.id, found[1])
        for cluster in draft.clusters
        for flavor in of.flavors
        for pod_set in (p for waiting in of.pending for p in waiting.pod_sets)
        for sought in (draft.packed.sought(cluster=cluster, pod_set=pod_set, flavor=flavor),)
        for found in (sought and sought.best(),)
    ]


@FEW
@given(of=snapshots())
def test_an_index_kept_up_by_changes_equals_one_made_anew(of: Snapshot) -> None:
    changed = Draft(snapshot=of, holding=of.holding, packs=True)
    _state(changed, of)
    places = [(a, p) for a in plan(of, POLICY).admits for p in a.places]
    by_id = {p.id: p for p in of.pending}
    for admit, place in places:
        changed.add(project=by_id[admit.workload].project, holder=place)
    grown = [*of.holding, *(holds(a, by_id[a.workload]) for a in plan(of, POLICY).admits)]
    anew = Draft(snapshot=of, holding=grown, packs=True)
    assert _state(changed, of) == _state(anew, of)


@MANY
@given(of=snapshots())
def test_a_reason_is_a_sentence_with_sorted_numbers(of: Snapshot) -> None:
    for hold in plan(of, POLICY).holds:
        names = [name for name, _ in hold.reason.numbers]
        assert names == sorted(names)
        assert describe(hold.reason).endswith(".")


@MANY
@given(of=snapshots())
def test_what_is_refused_at_submission_never_starts_and_what_starts_is_not_refused(
    of: Snapshot,
) -> None:
    admitted = decide(of).admits
    for waiting in of.pending:
        reason = never_admissible(of, waiting)
        assert reason is None or waiting.id not in admitted
        if reason is not None and reason.code is ReasonCode.NEVER_ADMISSIBLE:
            idle = replace(of, holding=(), pending=(waiting,))
            assert not decide(idle).admits


@FEW
@given(data=st.data())
def test_the_dry_run_says_what_the_plan_then_does(data: st.DataObject) -> None:
    of = data.draw(snapshots())
    asked = data.draw(jobs("asked"))
    answer = would_start(of, POLICY, asked)
    made = plan(replace(of, pending=(*of.pending, asked)), POLICY)
    if isinstance(answer, Hold):
        assert answer == Hold((asked.id,), made.reasons()[asked.id])
    else:
        assert answer in made.admits
        assert answer.workload == asked.id


@MANY
@given(of=snapshots())
@example(of=fleet(138624723, 3, 7))  # the gang for which was evicted did not fit as it was packed
def test_a_fleet_to_which_nothing_comes_settles(of: Snapshot) -> None:
    """Victims ask again at once. No ring of evictions: soon nothing changes any more."""
    for _ in range(40):
        later, changed = carried_out(of, plan(of, POLICY))
        if not changed:
            return
        of = replace(later, at=of.at)
    pytest.fail("still starting and evicting after 40 plans")


@MANY
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_no_victim_evicts_who_evicted_it_while_time_passes_and_work_is_saved(
    of: Snapshot, seed: int
) -> None:
    """Nor anybody who was evicted for that one, and so on: least run times and checkpoints change
    who goes, and still close no ring. When all have run for their least time, it settles."""
    pick = Random(seed)
    evicted, quiet = Evicted(), 0
    for _ in range(60):
        made = plan(of, POLICY)
        assert violations(of, made) == ()
        assert evicted.no_ring_with(made)
        later, changed = carried_out(of, made)
        quiet = 0 if changed else quiet + 1
        if quiet > LEAST_RUN_S // 60:
            return
        saved = (
            replace(h, checkpointed_at=of.at) if pick.random() < 0.2 else h for h in later.holding
        )
        of = replace(later, holding=tuple(saved))
    pytest.fail("still starting and evicting after 60 minutes")
