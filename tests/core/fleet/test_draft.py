"""A draft that was changed and rolled back is the draft that was made with what is left in it."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.fleet.draft import Draft
from scheduler.core.policy import Policy
from scheduler.core.snapshot import HeldView, NodeView, Snapshot
from scheduler.core.units import NodeId, ProjectId
from tests.core.build import holds, node, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots

Held = tuple[ProjectId, HeldView]

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["move", "move", "move", "let in", "mark", "roll back", "look"]),
        st.integers(0, 2**16),
    ),
    max_size=25,
)


def _placements(of: Snapshot) -> list[Held]:
    """What runs and what a plan starts: all of it has room side by side."""
    by_id = {pending.id: pending for pending in of.pending}
    started = [holds(a, by_id[a.workload]) for a in plan(of, Policy(preemption=False)).admits]
    return [(h.project, p) for h in (*of.holding, *started) for p in h.placements]


def _told(draft: Draft) -> object:
    rooms = {
        node: (r.cpu_milli, r.memory_mib, dict(r.taken), set(r.media), set(r.broken))
        for node, r in draft.rooms.items()
    }
    return rooms, draft.book.usage(), draft.index.pools()


def _anew(of: Snapshot, inside: Mapping[Held, bool]) -> Draft:
    one = of.holding[0]
    holding = [
        replace(one, project=project, placements=(placement,))
        for (project, placement), is_in in inside.items()
        if is_in
    ]
    return Draft(snapshot=of, holding=holding, packs=True)


@settings(deadline=None)
@given(of=snapshots().filter(lambda of: of.holding), steps=_STEPS, look=st.booleans())
def test_it_equals_one_made_from_nothing(
    of: Snapshot, steps: list[tuple[str, int]], look: bool
) -> None:
    """Moves in any order, marks inside of marks, and rooms that are made early or late."""
    draft = Draft(snapshot=of, holding=of.holding, packs=True)
    running = {placement.id for held in of.holding for placement in held.placements}
    inside = {held: held[1].id in running for held in _placements(of)}
    marks: list[tuple[int, dict[Held, bool]]] = []
    for step, number in steps:
        held = project, placement = list(inside)[number % len(inside)]
        if step == "move" and inside[held]:
            draft.remove(project=project, holder=placement)
            inside[held] = False
        elif step == "move":
            draft.add(project=project, holder=placement)
            inside[held] = True
        elif step == "let in" and not marks and not inside[held]:
            draft.book.charge(
                project=project, flavor=placement.flavor, amount_milli=placement.amount_milli
            )
            draft.let_in(holders=[placement])
            inside[held] = True
        elif step == "mark":
            marks.append((draft.checkpoint(), dict(inside)))
        elif step == "roll back" and marks:
            del marks[number % len(marks) + 1 :]
            mark, inside = marks.pop()
            draft.rollback(mark)
        elif step == "look":
            assert _told(draft) == _told(_anew(of, inside))
    if look:
        assert _told(draft) == _told(_anew(of, inside))
    if marks:
        mark, inside = marks[0]
        draft.rollback(mark)
    assert _told(draft) == _told(_anew(of, inside))


@settings(deadline=None)
@given(of=snapshots().filter(lambda of: of.holding), seed=st.integers(0, 2**32))
def test_one_beside_it_is_as_one_made_from_nothing_and_leaves_it_as_it_is(
    of: Snapshot, seed: int
) -> None:
    """With other views of some nodes, whether they are out, and in clusters that are."""
    pick = Random(seed)

    def other(node: NodeView) -> NodeView:
        devices = tuple(replace(d, usable=pick.random() < 0.5) for d in node.devices)
        return replace(node, usable=True, devices=pick.choice((node.devices, devices)))

    shut = (pick.choice((c, replace(c, usable=False))) for c in of.clusters)
    of = replace(of, clusters=tuple(shut))
    draft = Draft(snapshot=of, holding=of.holding, packs=True)
    held = {(h.project, p): True for h in of.holding for p in h.placements}
    for project, placement in pick.sample(sorted(held, key=str), len(held) // 2):
        draft.remove(project=project, holder=placement)
        held[project, placement] = False
    nodes = {n.id: n for c in of.clusters for n in c.nodes}
    views = {id: other(node) for id, node in nodes.items() if pick.random() < 0.7}
    views |= {n.id: other(n) for c in of.clusters for n in c.nodes if not (c.usable and n.usable)}
    before, state = _told(draft), draft.state
    beside = draft.beside(views.values())
    back = (
        replace(c, usable=True, nodes=tuple(views.get(n.id, n) for n in c.nodes))
        for c in of.clusters
    )
    assert _told(beside) == _told(_anew(replace(of, clusters=tuple(back)), held))
    mark, stays = beside.checkpoint(), [each for each, is_in in held.items() if is_in]
    for project, placement in stays:
        beside.remove(project=project, holder=placement)
    beside.rollback(mark)
    assert (_told(draft), draft.state) == (before, state)


def test_its_state_is_the_same_number_when_all_is_as_it_was() -> None:
    of = snapshot(nodes=[node("n1", gpus=2)], queues=[queue("a", h100=2)])
    draft = Draft(snapshot=of, holding=())
    one, two = (p for gpu in ("n1/0", "n1/1") for p in runs("r", "a", gpu).placements)
    states = [draft.state]
    mark = draft.checkpoint()
    draft.add(project=ProjectId("a"), holder=one)
    states.append(draft.state)
    draft.rollback(mark)
    assert draft.state == states[0]
    draft.add(project=ProjectId("a"), holder=one)
    states.append(draft.state)
    draft.let_in(holders=[two])
    states.append(draft.state)
    draft.tighten(node=NodeId("n1"), other=Draft(snapshot=of, holding=()).rooms[NodeId("n1")])
    states.append(draft.state)
    assert len(set(states)) == len(states)
