"""A plan with the sweep is the plan without it, to the last number of the last reason."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core import cycle
from scheduler.core.plan import Plan, Verdict
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason
from scheduler.core.request import SHAPE, Request
from scheduler.core.snapshot import (
    HoldingView,
    NodeView,
    PendingView,
    Placing,
    PodSetView,
    Snapshot,
)
from scheduler.core.sweep import running
from scheduler.core.sweep.sweep import Sweep
from scheduler.core.sweep.tree import MOST
from scheduler.core.units import ClusterId, FlavorId
from tests.bench.fleet import fleet
from tests.core.build import (
    A30,
    AT,
    FLAVORS,
    Quota,
    cpu_pods,
    job,
    milli,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import fleet as random_fleet
from tests.core.drawn.fleets import shuffled, snapshots
from tests.core.drawn.rated import rates

ALL = Policy(max_admits=10**9)
NEVER = 10**9


def planned(of: Snapshot, policy: Policy, *, least: int) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", least)
        return cycle.plan(of, policy)


def agree(of: Snapshot, policy: Policy = ALL) -> Plan:
    """Also on why work is where it is, which is no part of a plan."""
    swept, by_hand = (planned(of, policy, least=least) for least in (0, NEVER))
    assert swept == by_hand
    assert [admit.choice for admit in swept.admits] == [admit.choice for admit in by_hand.admits]
    return swept


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 4), st.integers(0, 2))
def test_it_plans_as_by_hand(of: Snapshot, most: int, preemptors: int) -> None:
    agree(of)
    agree(of, Policy(max_admits=most, max_preemptors=preemptors))
    agree(of, Policy(guard_s=AT - 1, most_kept=1 + preemptors))


def test_most_random_fleets_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the properties say nothing."""
    swept, take = set[int](), Sweep.next

    def noted(self: Sweep) -> PendingView | None:
        swept.add(seed)
        return take(self)

    monkeypatch.setattr(Sweep, "next", noted)
    for seed in range(100):
        planned(random_fleet(seed, 6, 10), ALL, least=0)
    assert len(swept) >= 50


@settings(deadline=None)
@given(snapshots(12), st.integers(0, 2**32))
def test_it_does_not_depend_on_the_order_of_the_input(of: Snapshot, seed: int) -> None:
    assert planned(of, ALL, least=0) == planned(shuffled(of, seed), ALL, least=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [50, 10**9])
def test_it_plans_a_large_fleet_as_by_hand(seed: int, most: int) -> None:
    of = fleet(pending=1500, nodes=60, queues=40, seed=seed)
    assert len(agree(of, Policy(max_admits=most)).admits) >= 50


@pytest.mark.parametrize("seed", range(4))
def test_it_chooses_of_several_clusters_as_by_hand(seed: int) -> None:
    """One of which takes nothing, and of which some work accepts some; two charge less. Some of it
    accepts two flavors, or starts in part."""
    pick, of = Random(seed), fleet(pending=600, nodes=40, queues=10, seed=seed)
    [one] = of.clusters
    clusters = tuple(
        replace(one, id=ClusterId(name), name=name, nodes=one.nodes[nth::4], usable=name != "d")
        for nth, name in enumerate("abcd")
    )
    cut = FlavorId("a100-3g.40gb"), FlavorId("a100-1g.10gb")

    def asks(pending: PendingView) -> PendingView:
        [pod_set] = pending.pod_sets
        flavors = pick.choice([pod_set.flavors, cut]) if pod_set.flavors[0] in cut else None
        least = pick.choice([pod_set.count, 1])
        wanted = replace(pod_set, min_count=least, flavors=flavors or pod_set.flavors)
        accepted = pick.choice([(), (), (ClusterId("b"),), (ClusterId("a"), ClusterId("c"))])
        return replace(pending, clusters=accepted, pod_sets=(wanted,))

    charged = {"a": 2, "b": 1.5, "c": 2, "d": 1.5}
    several = replace(
        of,
        clusters=clusters,
        pending=tuple(map(asks, of.pending)),
        rates=rates(**{c: {str(f.id): rate for f in of.flavors} for c, rate in charged.items()}),
    )
    choices = [admit.choice for admit in agree(several).admits]
    told = Counter(offer.verdict for choice in choices if choice for offer in choice.offers)
    assert told.keys() == set(Verdict)
    assert any(choice.passed for choice in choices if choice)


def test_it_goes_on_from_what_runs() -> None:
    first = fleet(pending=800, nodes=40, queues=20)
    more = fleet(pending=1600, nodes=40, queues=20)
    started = {admit.workload for admit in agree(first).admits}
    waiting = tuple(p for p in more.pending if p.id not in started)
    agree(replace(more, pending=waiting))


def by_hand(of: Snapshot, monkeypatch: pytest.MonkeyPatch, policy: Policy = ALL) -> list[str]:
    """The workloads that a sweep hands out, in that order."""
    found: list[str] = []
    handed = Sweep.next

    def watched(self: Sweep) -> PendingView | None:
        pending = handed(self)
        if pending is not None:
            found.append(pending.id)
        return pending

    monkeypatch.setattr(Sweep, "next", watched)
    agree(of, policy)
    return found


def test_plain_work_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    of = fleet(pending=600, nodes=20, queues=10)
    assert by_hand(of, monkeypatch) == []


def test_who_waits_for_long_is_handed_out_once_room_alone_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = fleet(pending=600, nodes=20, queues=10)
    guarded = replace(ALL, guard_s=0)
    of = replace(of, pending=tuple(replace(p, submitted_at=of.at) for p in of.pending))
    [kept] = agree(of, guarded).keeps
    asks = {str(p.id): (p.preemptible, *map(SHAPE, p.pod_sets)) for p in of.pending}
    handed = by_hand(of, monkeypatch, guarded)
    others = [asks[id] for id in handed if id != kept.workload]
    assert len(others) == len(handed) - 1 == len(set(others)), (
        "whether there were room is asked once"
    )


def test_neither_is_work_without_devices_that_nodes_have_cores_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = snapshot(
        nodes=[node("n1", cores=8), node("n2", cores=8)],
        queues=[queue("a", cpu=16), queue("b", cpu=Quota(2, borrow=None))],
        pending=[
            job("starts", "a", cpu_pods(cores=6), priority=9),
            job("huge", "a", cpu_pods(cores=9), priority=7),
            job("waits", "a", cpu_pods(3, cores=4), priority=5),
            job("behind", "a", cpu_pods(cores=4), priority=1),
            job("other", "b", cpu_pods(cores=2)),
        ],
    )
    assert by_hand(of, monkeypatch) == ["huge"]


def helped(*pending: PendingView, holding: Sequence[HoldingView], quota: int = 2) -> Snapshot:
    """On a node that is full. First comes `x`, which asks what is free once all that leaves has
    left, so that it is known for those after it; it evicts `low`, of its own project."""
    low, first = runs("low", "first", "n1/0"), job("x", "first", priority=9)
    projects = sorted({of.project for of in pending} | {of.project for of in holding})
    quotas = [queue(name, h100=Quota(0, None) if name == "lent" else quota) for name in projects]
    return snapshot(
        nodes=[node("n1", gpus=1 + sum(len(of.placements) for of in holding))],
        queues=[queue("first", h100=1), *quotas],
        holding=[low, *holding],
        pending=[first, *pending],
    )


def test_whom_too_few_could_go_for_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{i}" for i in range(4)]
    holding = [runs(f"of-{name}", name, f"n1/{1 + nth}") for nth, name in enumerate(names)]
    pending = [job(f"w{i}", of, pods(gpus=2), priority=1) for i, of in enumerate(names)]
    of = helped(*pending, holding=holding)
    assert by_hand(of, monkeypatch) == ["x"]
    assert [preempt.victim for preempt in agree(of).preempts] == ["low"]


@pytest.mark.parametrize(("least", "victims"), [(0, ["of-a", "low"]), (1, ["low"])])
def test_own_work_of_lower_priority_counts(
    least: int, victims: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = runs("of-a", "a", "n1/1", "n1/2", priority=least)
    of = helped(job("w", "a", pods(gpus=2), priority=1), holding=[held])
    assert by_hand(of, monkeypatch) == ["x", "w"][: len(victims)]
    assert sorted(preempt.victim for preempt in agree(of).preempts) == sorted(victims)


def test_own_work_that_gives_way_may_bring_it_within_a_guarantee(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By itself it is too little room."""
    holding = [runs("own", "a", "n1/1"), runs("lent", "lent", "n1/2")]
    of = helped(job("w", "a", pods(gpus=2), priority=1), holding=holding)
    assert by_hand(of, monkeypatch) == ["x", "w"]
    assert sorted(p.victim for p in agree(of).preempts) == ["lent", "low", "own"]


@pytest.mark.parametrize(("lent", "victims"), [(2, ["lent", "low", "own"]), (1, ["low"])])
def test_those_who_are_reclaimed_from_count_with_what_they_hold(
    lent: int, victims: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = ["n1/2", "n1/3"]
    holding = [
        runs("own", "a", "n1/1"),
        runs("lent", "lent", *devices[:lent]),
        *(runs("stays", "b", device) for device in devices[lent:]),
    ]
    of = helped(job("w", "a", pods(gpus=3), priority=1), holding=holding, quota=3)
    assert by_hand(of, monkeypatch) == ["x", "w"][: len(victims)]
    assert sorted(p.victim for p in agree(of).preempts) == victims


@pytest.mark.parametrize(
    ("asks", "found"), [(2, ["w"]), (3, [])], ids=["the quota will do", "it will not"]
)
@pytest.mark.parametrize("taken", [0, 2], ids=["nothing is promised", "some is promised"])
def test_what_is_coming_back_is_waited_for_where_the_quota_will_do(
    asks: int, found: list[str], taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = snapshot(
        nodes=[node("n1", gpus=4), node("n2", gpus=2)],
        queues=[queue("a", h100=2 + taken), queue("b", h100=2)],
        pending=[job("w", "a", pods(gpus=asks)), job("first", "a", pods(gpus=2), priority=1)][
            : 1 + taken
        ],
        holding=[
            runs("leaves", "a", "n1/0", "n1/1", "n1/2", "n1/3", releasing=True),
            runs("stays", "b", "n2/0", "n2/1"),
        ],
    )
    promised = ["first"] if taken else []
    assert by_hand(of, monkeypatch) == promised + found


@pytest.mark.parametrize(
    ("cut", "asks"),
    [
        (node("n2", gpus=1, cut=(("1g.10gb", 0, 1),)), pods(flavors="1g")),
        (node("n2", gpus=1, dynamic=True), pods(flavors="1gme")),
    ],
    ids=["slices that are cut already", "media engines"],
)
def test_what_is_not_plain_is_decided_by_hand(
    cut: NodeView, asks: PodSetView, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = snapshot(
        nodes=[node("n1", gpus=2), cut],
        queues=[queue("a", h100=8, _1g=8, _1gme=8)],
        pending=[job("w1", "a", asks), job("w2", "a", pods())],
    )
    assert by_hand(of, monkeypatch) == ["w1"]


def test_what_has_to_be_together_and_what_is_spread_are_decided_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spread = tuple(replace(f, placing=Placing.SPREAD) if f.id == "a30" else f for f in FLAVORS)
    of = snapshot(
        nodes=[node("n1", gpus=4, at="r1"), node("n2", gpus=4, model=A30)],
        queues=[queue("a", h100=8, a30=8)],
        pending=[
            job("near", "a", pods(), near="rack"),
            job("plain", "a", pods()),
            job("spread", "a", pods(flavors="a30")),
            job("within", "a", pods(), within="rack"),
        ],
        levels="rack",
    )
    assert by_hand(replace(of, flavors=spread), monkeypatch) == ["near", "spread", "within"]


@pytest.mark.parametrize("nominal", [MOST, 2 * MOST, 2**62])
def test_quantities_that_the_tables_cannot_hold_are_planned_by_hand(nominal: int) -> None:
    of = snapshot(
        nodes=[node("n1", gpus=8)],
        queues=[queue("a", h100=Quota(nominal // milli(1)))],
        pending=[job(f"w{i}", "a", pods()) for i in range(10)],
    )
    assert len(agree(of).admits) == 8


def test_compiled_code_on_disk_is_made_anew_when_its_parts_change() -> None:
    """numba looks at the file of an entry alone."""
    here = Path(running.__file__).parent
    parts = [
        here / "charging.py",
        here / "evicting.py",
        here / "guarding.py",
        here / "placing.py",
        here / "starting.py",
        here / "state.py",
        here.parent / "quota/share.py",
    ]
    read = sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:16]
    assert read == running.PARTS, f"write PARTS = {read!r} in {Path(running.__file__).name}"


def test_numbers_of_more_than_63_bits_are_planned_by_hand() -> None:
    waits = [job(f"w{i}", "a", pods()) for i in range(3)]
    late = replace(waits[0], submitted_at=2**63)
    of = snapshot(
        nodes=[node("n1", gpus=8)], queues=[queue("a", h100=8)], pending=[late, *waits[1:]]
    )
    assert len(agree(of).admits) == 3


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        (Quota(1, borrow=0), ["a"]),
        (Quota(2, borrow=0), ["a", "c"]),
        (Quota(1, borrow=1), ["a", "c"]),
        (Quota(1, borrow=0, lend=0), ["a"]),
    ],
    ids=["all the same", "another nominal", "another limit", "what is not told of"],
)
@pytest.mark.parametrize("uses", [False, True], ids=["alike in use", "one uses some"])
def test_the_reason_is_asked_once_for_those_who_lack_the_same_quota(
    other: Quota, asked: list[str], uses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = snapshot(
        nodes=[node("n1", gpus=8)],
        queues=[
            queue("a", h100=Quota(1, borrow=0)),
            queue("b", h100=Quota(1, borrow=0)),
            queue("c", h100=other),
        ],
        pending=[job(f"{project}{n}", project, pods(gpus=4)) for project in "abc" for n in "12"],
        holding=[runs("uses", "b", "n1/0")] if uses else [],
    )
    found: list[str] = []
    why = cycle.Cycle._why_not

    def noted(self: cycle.Cycle, pending: PendingView, request: Request) -> Reason:
        found.append(pending.project)
        return why(self, pending, request)

    agree(of)
    monkeypatch.setattr(cycle.Cycle, "_why_not", noted)
    planned(of, ALL, least=0)
    assert sorted(found) == sorted([*asked, *(["b"] if uses else [])])
