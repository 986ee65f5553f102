"""What would help a workload that waits: each kind of change, its number, and that it is true."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.explaining.change import Change, Relaxation, Unit, describe
from scheduler.core.explaining.explain import explain
from scheduler.core.explaining.relax import MOST_FLAVORS
from scheduler.core.explaining.whatif import accepting, funded, granted, later, would_start
from scheduler.core.plan import Admit, Hold
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import Isolation, PendingView, PodSetView, ReservationView, Snapshot
from scheduler.core.units import ONE_MILLI, BudgetId, FlavorId, ProjectId
from tests.core.build import (
    A30,
    AT,
    T4,
    Quota,
    cluster,
    cohort,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import fleet, snapshots
from tests.core.moving.test_consolidate import MIXED, halves, sliced

QUEUES = [queue("a", h100=16, a30=16), queue("b", h100=16)]
EASY = Policy(guard_s=300, preemption=False)


def helps(
    of: Snapshot, asked: PendingView, policy: Policy | None = None
) -> dict[Change, Relaxation]:
    found = explain(snapshot=of, policy=policy or Policy(), pending=asked).relaxations
    assert [one.change for one in found] == sorted(
        (one.change for one in found), key=list(Change).index
    )
    return {one.change: one for one in found}


def busy(*where: str, limit_s: int | None = None, cores: float = 1) -> Snapshot:
    """Two nodes of two devices in racks of one zone; b holds some of them."""
    return snapshot(
        nodes=[node("n1", gpus=2, at="z/r1"), node("n2", gpus=2, at="z/r2")],
        queues=QUEUES,
        holding=[
            runs(f"r{i}", "b", on, limit_s=limit_s and limit_s + i, cores=cores)
            for i, on in enumerate(where)
        ],
        levels="zone rack",
    )


def test_another_flavor_of_the_same_kind_that_has_room() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
        queues=QUEUES,
        holding=[runs("r", "b", "n1/0")],
    )
    assert helps(of, job("w")) == {Change.FLAVOR: Relaxation(Change.FLAVOR, None, "a30")}


def test_not_a_flavor_of_which_the_project_has_no_quota_nor_a_smaller_slice() -> None:
    of = snapshot(
        nodes=[
            node("n1", gpus=1, dynamic=True),
            node("n2", gpus=1, model=A30),
            node("n3", gpus=1),
        ],
        queues=[queue("a", _2g=16, _1g=16, h100=1), queue("b", _2g=9)],
        holding=[runs("r", "b", "n1/0", flavor="2g", span=(0, 2))],
    )
    asked = job("w", "a", pods(4, flavors="2g"))
    assert Change.FLAVOR not in helps(of, asked)


def test_flavors_that_the_project_may_never_hold_use_up_no_tries() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1), node("n2", gpus=1, model=A30)],
        queues=QUEUES,
        holding=[runs("r", "b", "n1/0")],
    )
    own = next(flavor for flavor in of.flavors if flavor.name == "h100")
    others = [replace(own, id=FlavorId(f"a0{i}"), name=f"a0{i}") for i in range(MOST_FLAVORS + 1)]
    more = replace(of, flavors=(*of.flavors, *others))
    assert helps(more, job("w"))[Change.FLAVOR] == Relaxation(Change.FLAVOR, None, "a30")


def test_any_cluster_where_the_accepted_one_is_full() -> None:
    of = snapshot(
        clusters=[cluster("c1", [node("n1", gpus=1)]), cluster("c2", [node("n2", gpus=1)])],
        queues=QUEUES,
        holding=[runs("r", "b", "n1/0")],
    )
    found = helps(of, job("w", clusters="c1"))
    assert found[Change.CLUSTER] == Relaxation(Change.CLUSTER, None, "c2")


def test_a_wider_level_before_none() -> None:
    asked = job("w", "a", pods(2), within="rack")
    assert helps(busy("n1/0", "n2/0"), asked)[Change.TOPOLOGY] == Relaxation(
        Change.TOPOLOGY, "rack", "zone"
    )
    of = busy("n1/0", "n2/0")
    apart = [replace(n, topology=n.topology[1:]) for n in of.clusters[0].nodes]
    of = replace(of, levels=("rack",), clusters=(cluster("c1", apart),))
    assert helps(of, asked)[Change.TOPOLOGY] == Relaxation(Change.TOPOLOGY, "rack", None)


def test_a_run_time_limit_that_ends_before_a_reservation() -> None:
    window = ReservationView(ProjectId("b"), FlavorId("h100"), 4000, AT + 600, AT + 900)
    of = replace(busy(), reservations=(window,))
    found = helps(of, job("w"))
    assert found[Change.RUN_LIMIT] == Relaxation(Change.RUN_LIMIT, None, 600, Unit.SECONDS)
    assert found[Change.WAIT].new == 900
    assert helps(of, job("w", limit_s=700))[Change.RUN_LIMIT].old == 700


def test_a_run_time_limit_that_ends_before_room_that_is_kept() -> None:
    of = busy("n1/0", limit_s=500)
    of = replace(of, pending=(job("gang", "a", pods(4), submitted_at=AT - 600),))
    found = helps(of, job("w", "b", submitted_at=AT), EASY)
    assert found[Change.RUN_LIMIT] == Relaxation(Change.RUN_LIMIT, None, 500, Unit.SECONDS)


def test_as_many_cores_or_as_much_memory_as_there_is_by_sixteenths() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=2)], queues=QUEUES, holding=[runs("r", "b", "n1/0", cores=32)]
    )
    found = helps(of, job("w", "a", pods(cores=40)))
    assert found[Change.CORES] == Relaxation(Change.CORES, 40_000, 30_000, Unit.MILLI, "w.main")
    found = helps(of, job("w", "a", pods(memory_gib=512)))
    assert found[Change.MEMORY].new == 480 * 1024


def test_as_many_pods_as_start() -> None:
    found = helps(busy("n1/0"), job("w", "a", pods(6)))
    assert found[Change.PODS] == Relaxation(Change.PODS, 6, 3, Unit.COUNT, "w.main")


def test_half_as_many_devices_a_pod_as_often_as_it_takes() -> None:
    of = busy("n1/0", "n2/0")
    found = helps(of, job("w", "a", pods(2, gpus=2)))
    assert found[Change.GPUS] == Relaxation(Change.GPUS, 2, 1, Unit.COUNT, "w.main")
    large = snapshot(nodes=[node("n1", gpus=8)], queues=[queue("a", h100=3)])
    found = helps(large, job("w", "a", pods(gpus=8)))
    assert found[Change.GPUS] == Relaxation(Change.GPUS, 8, 2, Unit.COUNT, "w.main")
    assert Change.GPUS not in helps(busy("n1/0", "n1/1", "n2/0", "n2/1"), job("w"))


def test_a_smaller_part_of_a_device_by_thousandths_or_by_memory() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1, model=T4, shares=Isolation.MEMORY)],
        queues=[queue("a", t4share=4)],
        holding=[runs("r", "a", "n1/0", flavor="t4share", span=(0, 700), amount=0.7)],
    )
    asked = pods(flavors="t4share", share=0.5)
    found = helps(of, job("w", "a", asked))
    assert found[Change.SHARE] == Relaxation(Change.SHARE, 500, 250, Unit.MILLI, "w.main")
    by_memory = replace(asked, gpu_milli=1000, gpu_memory_mib=8192)
    found = helps(of, job("w", "a", by_memory))
    assert found[Change.SHARE] == Relaxation(Change.SHARE, 8192, 4096, Unit.MEBIBYTES, "w.main")


def test_the_very_quota_that_is_lacking() -> None:
    of = replace(busy(), queues=(queue("a", h100=1), queue("b", h100=3)))
    found = helps(of, job("w", "a", pods(3)))
    assert found[Change.QUOTA] == Relaxation(Change.QUOTA, None, 2000, Unit.MILLI, "h100")


def test_quota_with_which_it_takes_back_what_others_borrow() -> None:
    of = busy("n1/0", "n1/1", "n2/0", "n2/1")
    of = replace(
        of, queues=(queue("a", h100=Quota(0, borrow=None)), queue("b", h100=Quota(2, borrow=None)))
    )
    found = helps(of, job("w"))
    assert found[Change.QUOTA].new == 1000
    assert not found[Change.QUOTA].starts_now


def test_what_may_not_be_preempted_may_be_or_has_more_guaranteed() -> None:
    given = queue("a", h100=Quota(1, borrow=None)), queue("b", h100=3)
    asked = replace(job("w", "a", pods(3)), preemptible=False)
    found = helps(replace(busy(), queues=given), asked)
    assert found[Change.PREEMPTIBLE] == Relaxation(Change.PREEMPTIBLE, None, None)
    assert found[Change.QUOTA] == Relaxation(Change.QUOTA, None, 2000, Unit.MILLI, "h100")


def test_the_first_moment_at_which_enough_has_ended() -> None:
    of = busy("n1/0", "n1/1", "n2/0", limit_s=100)
    assert helps(of, job("w", "a", pods(3)))[Change.WAIT] == Relaxation(
        Change.WAIT, None, 101, Unit.SECONDS, starts_now=False
    )
    assert helps(busy(), job("w", not_before=AT + 60)) == {
        Change.WAIT: Relaxation(Change.WAIT, None, 60, Unit.SECONDS, starts_now=False)
    }


def test_nothing_is_asked_of_who_waits_for_people() -> None:
    of = replace(busy(), queues=(replace(QUEUES[0], held_by=("tenant a",)),))
    assert helps(of, job("w", "a", pods(2))) == {}


def test_no_plan_is_made_once_it_is_late() -> None:
    answers = iter([False, False, False])
    asked = job("w", "a", pods(6))
    explained = explain(
        snapshot=busy("n1/0"),
        policy=Policy(),
        pending=asked,
        late=lambda: next(answers, True),
    )
    assert all(one.change is Change.PODS and one.new == 1 for one in explained.relaxations)


def _wider(pod_set: PodSetView, level: int | str | None) -> PodSetView:
    topology = pod_set.topology
    assert topology is not None
    wider = replace(topology, level=str(level)) if level else replace(topology, required=False)
    return replace(pod_set, topology=wider)


def applied(of: Snapshot, asked: PendingView, one: Relaxation) -> tuple[Snapshot, PendingView]:
    """The fleet and the request with the change, as a user would make it of the words alone."""
    ids = {flavor.name: flavor.id for flavor in of.flavors}
    new, topology = one.new, asked.topology
    match one.change:
        case Change.FLAVOR:
            sets = [replace(p, flavors=(*p.flavors, ids[str(new)])) for p in asked.pod_sets]
            return of, replace(asked, pod_sets=tuple(sets))
        case Change.CLUSTER:
            return of, replace(asked, clusters=())
        case Change.TOPOLOGY:
            if one.subject:
                sets = [_wider(p, new) if p.id == one.subject else p for p in asked.pod_sets]
                return of, replace(asked, pod_sets=tuple(sets))
            assert topology is not None
            wider = replace(topology, level=str(new)) if new else replace(topology, required=False)
            return of, replace(asked, topology=wider)
        case Change.PREEMPTIBLE:
            return of, replace(asked, preemptible=True)
        case Change.ISOLATION:
            asks, fleet_then = accepting(of, asked, Isolation(str(new)))
            return fleet_then, asks
    assert isinstance(new, int)
    match one.change:
        case Change.RUN_LIMIT:
            return of, replace(asked, run_time_limit_s=new)
        case Change.QUOTA:
            return granted(of, asked.project, ids[one.subject], new), asked
        case Change.BUDGET:
            return funded(of, BudgetId(one.subject), new * 3600), asked
        case Change.WAIT:
            return later(of, of.at + new), asked
    sets = [
        {
            Change.CORES: replace(p, cpu_milli=new),
            Change.MEMORY: replace(p, memory_mib=new),
            Change.PODS: replace(p, min_count=new),
            Change.GPUS: replace(p, gpu_count=new),
            Change.SHARE: replace(p, gpu_memory_mib=new)
            if one.unit is Unit.MEBIBYTES
            else replace(p, gpu_milli=new),
        }[one.change]
        if p.id == one.subject
        else p
        for p in asked.pod_sets
    ]
    return of, replace(asked, pod_sets=tuple(sets))


def decided(of: Snapshot, asked: PendingView, one: Relaxation, policy: Policy) -> Admit | Hold:
    if one.change is Change.MOVES:
        assert isinstance(one.new, int)
        policy = replace(policy, consolidation_budget_milli_s=one.new * 3600)
        return would_start(of, policy, asked)
    fleet, request = applied(of, asked, one)
    return would_start(fleet, policy, request)


@pytest.mark.parametrize(("may_be_lost_s", "told"), [(0, "0"), (59, "0.016")])
def test_more_that_may_be_lost_by_moving_work(may_be_lost_s: int, told: str) -> None:
    of = halves()
    policy = Policy(consolidation_budget_milli_s=may_be_lost_s * ONE_MILLI)
    found = helps(of, of.pending[0], policy)[Change.MOVES]
    assert (found.new, found.starts_now) == (17, False)
    words = f"Let one plan lose 0.017 GPU-hours by moving work, not {told}, as an operator may"
    assert describe(found).startswith(words)
    enough = Policy(consolidation_budget_milli_s=60 * ONE_MILLI)
    assert Change.MOVES not in helps(of, of.pending[0], enough)


def test_a_slice_is_offered_room_by_others_that_move_whatever_may_be_lost() -> None:
    """A seventh that has run for 14 hours moves for the first; nothing is left for the second."""
    of = sliced(*MIXED, ago_s=14 * 3600)
    found = [helps(of, asked).get(Change.MOVES) for asked in of.pending]
    assert [one and one.new for one in found] == [2000, None]


def test_what_costs_nothing_is_offered_where_nothing_may_be_lost() -> None:
    of = halves(ago_s=0)
    assert helps(of, of.pending[0])[Change.MOVES].new == 1


def test_what_may_not_move_is_no_offer() -> None:
    of = halves()
    firm = replace(of, holding=tuple(replace(held, preemptible=False) for held in of.holding))
    assert Change.MOVES not in helps(firm, of.pending[0])
    off = Policy(preemption=False)
    assert Change.MOVES not in helps(of, of.pending[0], off)


@settings(max_examples=120, deadline=None)
@given(of=snapshots(), guard_s=st.sampled_from([None, 0, 300]))
@example(of=fleet(3, 0, 8), guard_s=None)  # one that waits might accept less isolation
def test_what_is_said_to_help_helps(of: Snapshot, guard_s: int | None) -> None:
    policy = Policy(guard_s=guard_s)
    for asked in of.pending:
        found = explain(snapshot=of, policy=policy, pending=asked).relaxations
        assert len({one.change for one in found}) == len(found)
        for one in found:
            decision = decided(of, asked, one, policy)
            assert describe(one).endswith(".")
            if one.starts_now or one.change is Change.WAIT:
                assert isinstance(decision, Admit)
            else:
                assert isinstance(decision, Hold)
                assert decision.reason.code is ReasonCode.WAITING_FOR_PREEMPTION


@settings(max_examples=120, deadline=None)
@given(of=snapshots())
@example(of=fleet(22506, 2, 1))  # what is used is beyond what the fleet has
@example(of=fleet(23811, 3, 4))  # two flavors are lent on, one is lacking
@example(of=fleet(18832, 0, 7))  # a gang starts smaller with less
def test_a_thousandth_less_of_quota_would_not_do_for_who_waits_alone(of: Snapshot) -> None:
    for asked in of.pending:
        alone = replace(of, pending=(asked,))
        for one in explain(snapshot=alone, policy=Policy(), pending=asked).relaxations:
            if one.change is Change.QUOTA and one.starts_now:
                less = replace(one, new=int(one.new or 0) - 1)
                assert isinstance(decided(alone, asked, less, Policy()), Hold)


def test_quota_that_its_tenant_does_not_lend_is_the_least_that_helps() -> None:
    """More is used than the fleet has: its tenant keeps what goes beyond its lending limit."""
    others = replace(runs("r", "b", *(f"n1/{i}" for i in range(5))), preemptible=False)
    of = snapshot(
        nodes=[node("n1", gpus=8)],
        queues=[
            queue("a", tenant="s", h100=Quota(1, borrow=None)),
            queue("b", h100=Quota(0, borrow=None)),
        ],
        cohorts=[cohort("s", h100=Quota(0, borrow=None, lend=1))],
        holding=[runs("own", "a", "n1/5", "n1/6"), others],
    )
    found = explain(snapshot=of, policy=Policy(), pending=job("w")).relaxations
    assert [(one.new, one.starts_now) for one in found if one.change is Change.QUOTA] == [
        (3000, True)
    ]


@pytest.mark.parametrize("change", Change)
def test_each_change_has_its_sentence(change: Change) -> None:
    one = Relaxation(change, 8, 4, Unit.COUNT, "h100")
    assert describe(one)[-1] == "."
    assert "None" not in describe(replace(one, old=None))
