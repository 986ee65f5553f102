"""What one plan remembers of its evictions: who is promised what, and whom nothing can help."""

from collections.abc import Iterable
from itertools import count

import pytest

from scheduler.core.cycle import plan
from scheduler.core.evicting import preempt
from scheduler.core.evicting.eligible import Eligible
from scheduler.core.evicting.preempt import MOST_SEARCHES, MOST_SEARCHES_EACH, Evictions
from scheduler.core.evicting.search import Wait
from scheduler.core.fleet.draft import Draft
from scheduler.core.plan import Place
from scheduler.core.policy import Policy
from scheduler.core.request import Request, Requests
from scheduler.core.snapshot import PendingView, QueueView, Snapshot
from scheduler.core.units import (
    WHOLE_DEVICE,
    DeviceId,
    FlavorId,
    NodeId,
    PodSetId,
    ProjectId,
    WorkloadId,
)
from tests.core.build import T4, Quota, cluster, job, node, pods, queue, runs, snapshot

A, H100 = ProjectId("a"), FlavorId("h100")


class Asking:
    """Evictions of a plan, as its cycle asks for them."""

    def __init__(self, of: Snapshot) -> None:
        self.evictions = Evictions(snapshot=of, policy=Policy())
        self._now = Draft(snapshot=of, holding=of.holding)
        self._requests = Requests(flavors=self._now.flavors, book=self._now.book)

    def request(self, pending: PendingView) -> Request:
        return self._requests.of(pending)

    def find(self, pending: PendingView, *, reclaiming: str = "") -> list[str] | None:
        """The victims, ascending; `reclaiming` names the flavor for which borrowers may go."""
        request, by = self.request(pending), self._now.book.cohorts.number[pending.project]
        wait = self.evictions.find(
            pending=pending,
            request=request,
            options=request.options,
            guarantors={o: by for o in request.options if o.flavors[0].name == reclaiming},
            eligible_for=lambda option, guarantor: Eligible(
                candidates=self.evictions.candidates,
                pending=pending,
                option=option,
                soon=self.evictions.soon,
                book=self._now.book,
                guarantor=guarantor,
                late=None,
                goes_ahead=lambda of, needs: False,
            ),
            book=self._now.book,
        )
        if not isinstance(wait, Wait):
            return None
        return sorted(victim.id[0] for victim in wait.victims)

    def is_stuck(self, pending: PendingView) -> bool:
        (option,) = self.request(pending).options
        return self.evictions.is_stuck(option=option)


def place(on: str, device: int) -> Place:
    span = (DeviceId(f"{on}/{device}"), WHOLE_DEVICE)
    return Place(PodSetId("s"), 0, NodeId(on), H100, 1000, 1000, 1024, (span,))


def queues(*projects: str) -> Iterable[QueueView]:
    return [queue(project, h100=4, t4=4) for project in projects]


def test_who_only_waits_is_stuck_while_nothing_is_on_its_way_back() -> None:
    asked = job("w", "a")
    still = runs("low", "a", "n1/0")
    leaving = runs("low", "a", "n1/0", releasing=True)
    for holding, expected in (still, True), (leaving, False):
        of = snapshot(nodes=[node("n1", gpus=1)], queues=queues("a"), holding=[holding])
        assert Asking(of).is_stuck(asked) is expected


def test_who_was_not_helped_is_stuck_until_somebody_is_evicted() -> None:
    """What may be evicted for others may come free yet."""
    holding = [
        runs("gone", "a", "n1/0", releasing=True),
        runs("low", "b", "n1/1"),
        runs("firm", "c", "n2/0", preemptible=False),
    ]
    nodes = [node("n1", gpus=2), node("n2", gpus=1)]
    made = Asking(snapshot(nodes=nodes, queues=queues("a", "b", "c"), holding=holding))
    asked = job("w", "a", pods(gpus=2))
    assert not made.is_stuck(asked)
    assert made.find(asked) is None
    assert made.is_stuck(asked)
    assert made.find(job("x", "b", pods(gpus=2, cores=2), priority=1)) == ["low"]
    assert not made.is_stuck(asked)


class TestWhomNothingCanHelp:
    """Room for two on one node would need what never goes."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(preempt, "MOST_IN_VAIN", 0)

    def made(self) -> Asking:
        holding = [
            runs("firm", "a", "n1/0", preemptible=False),
            runs("low", "a", "n1/1"),
            runs("gone", "a", "n2/0", releasing=True),
        ]
        nodes = [node("n1", gpus=2), node("n2", gpus=1)]
        made = Asking(snapshot(nodes=nodes, queues=queues("a"), holding=holding))
        large = job("large", "a", pods(gpus=2), priority=1)
        assert made.find(large) is None
        assert made.is_stuck(large)
        return made

    def test_its_like_in_size_are_told_apart_by_what_they_ask_for(self) -> None:
        made = self.made()
        other = job("other", "a", pods(gpus=2, cores=2), priority=1)
        assert not made.is_stuck(other)
        assert made.find(other) is None
        assert made.is_stuck(other)

    def test_smaller_work_is_helped_as_far_as_there_is_anything(self) -> None:
        made = self.made()
        small = [job(f"w{i}", "a", priority=1) for i in range(3)]
        assert [made.find(each) for each in small] == [[], ["low"], None]

    def test_another_flavor_that_it_accepts_is_tried(self) -> None:
        assert self.made().find(job("w", "a", pods(flavors="t4 h100"), priority=1)) == []

    def test_what_starts_is_taken_from_what_may_come_free(self) -> None:
        made = self.made()
        used = made.evictions.soon.book.used(project=A, flavor=H100)
        made.evictions.started(pending=job("new", "a"), places=[place("n2", 0)])
        assert made.evictions.soon.book.used(project=A, flavor=H100) == used + 1000
        assert made.find(job("w1", "a", priority=1)) == ["low"]
        assert made.find(job("w2", "a", priority=1)) is None


def test_what_started_before_anybody_lacked_room_counts_too() -> None:
    of = snapshot(nodes=[node("n1", gpus=2)], queues=queues("a"))
    made = Asking(of)
    made.evictions.started(pending=job("new", "a"), places=[place("n1", 1)])
    soon = made.evictions.soon
    assert soon.book.used(project=A, flavor=H100) == 1000
    assert soon.rooms[NodeId("n1")].taken[DeviceId("n1/1")]


def test_a_flavor_for_which_nobody_may_go_does_not_end_the_search() -> None:
    borrower = runs("lent", "b", "n1/0")
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=1, t4=1), queue("b", h100=Quota(0, borrow=None))],
        holding=[borrower],
    )
    asked = job("w", "a", pods(flavors="t4 h100"))
    assert Asking(of).find(asked, reclaiming="h100") == ["lent"]


def test_what_is_of_a_project_without_quota_or_queue_is_given_back() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=1)],
        holding=[runs("lent", "z", "n1/0")],
    )
    assert Asking(of).find(job("w", "a"), reclaiming="h100") == ["lent"]


def test_who_asked_in_vain_asks_again_once_more_comes_free() -> None:
    holding = [runs("p", "b", "n1/0"), runs("q", "b", "n1/1", "n1/2", "n1/3")]
    made = Asking(snapshot(nodes=[node("n1", gpus=4)], queues=queues("a", "b"), holding=holding))
    asked = job("w", "a", pods(gpus=2))
    assert made.find(job("x1", "b", priority=1)) == ["p"]
    assert made.find(asked) is None
    assert made.find(job("x2", "b", priority=1)) == ["q"]
    assert made.find(asked) == []


def test_a_flavor_that_was_asked_for_in_vain_does_not_end_the_search() -> None:
    holding = [
        runs("low", "a", "n1", flavor="cpu"),
        runs("lent", "b", "n1/0"),
        runs("own", "b", "n2/0", flavor="t4"),
    ]
    of = snapshot(
        nodes=[node("n1", gpus=1), node("n2", gpus=1, model=T4)],
        queues=[queue("a", h100=1, t4=1, cpu=8), queue("b", h100=Quota(0, borrow=None), t4=1)],
        holding=holding,
    )
    made, asked = Asking(of), job("w", "a", pods(flavors="t4 h100"), priority=1)
    assert made.find(asked) is None
    assert made.find(asked, reclaiming="h100") == ["lent"]


def test_a_flavor_without_quota_does_not_end_the_search() -> None:
    of = snapshot(
        nodes=[node("n1", gpus=1)], queues=[queue("a", h100=1)], holding=[runs("low", "a", "n1/0")]
    )
    assert Asking(of).find(job("w", "a", pods(flavors="t4 h100"), priority=1)) == ["low"]


@pytest.mark.parametrize("other", [queue("b", h100=0), queue("b", t4=1)], ids=["used up", "none"])
def test_who_lacks_quota_says_nothing_about_who_has_it(other: QueueView) -> None:
    """Both ask for the same."""
    of = snapshot(
        nodes=[node("n1", gpus=1)],
        queues=[queue("a", h100=2), other],
        holding=[runs("gone", "a", "n1/0", releasing=True)],
    )
    made = Asking(of)
    assert made.find(job("w", "b")) is None
    assert made.find(job("v", "a")) == []


@pytest.mark.parametrize("firm", ["1", "2"])
def test_each_cluster_is_looked_at(firm: str) -> None:
    holding = [
        runs(f"r{i}", "a", f"n{i}/0", preemptible=i != firm, in_cluster=f"c{i}") for i in "12"
    ]
    clusters = [cluster(f"c{i}", [node(f"n{i}", gpus=1)]) for i in "12"]
    made = Asking(snapshot(clusters=clusters, queues=queues("a"), holding=holding))
    assert made.find(job("w", "a", priority=1)) == [f"r{3 - int(firm)}"]


def test_a_cluster_where_it_need_only_wait_comes_first() -> None:
    holding = [
        runs("low", "a", "n1/0", in_cluster="c1"),
        runs("gone", "a", "n2/0", in_cluster="c2", releasing=True),
    ]
    clusters = [cluster(f"c{i}", [node(f"n{i}", gpus=1)]) for i in "12"]
    made = Asking(snapshot(clusters=clusters, queues=queues("a"), holding=holding))
    assert made.find(job("w", "a", priority=1)) == []


@pytest.mark.parametrize(
    "policy",
    [Policy(max_preemptors=2), Policy(max_victims=2)],
    ids=["those who evict", "those who are evicted"],
)
def test_a_plan_counts(policy: Policy) -> None:
    holding = [runs(f"r{i}", "a", f"n1/{i}") for i in range(4)]
    pending = [job(f"w{i}", "a", priority=1, submitted_at=i) for i in range(4)]
    of = snapshot(
        nodes=[node("n1", gpus=4)], queues=[queue("a", h100=8)], holding=holding, pending=pending
    )
    made = plan(of, policy)
    assert [p.preemptor for p in made.preempts] == [WorkloadId("w0"), WorkloadId("w1")]


@pytest.mark.parametrize(
    ("projects", "times", "asks", "expected"),
    [
        (1, MOST_SEARCHES_EACH - 1, "p0", []),
        (1, MOST_SEARCHES_EACH, "p0", None),
        (1, MOST_SEARCHES_EACH, "other", []),
        (MOST_SEARCHES // 16, 16, "other", None),
    ],
    ids=["below the limit of a project", "at it", "another project", "at the limit of a plan"],
)
def test_in_vain_it_searches_so_often_and_no_more(
    projects: int, times: int, asks: str, expected: list[str] | None
) -> None:
    """Two GPUs come free, on two nodes."""
    names = [f"p{i}" for i in range(projects)]
    gone = [runs(f"gone{i}", "b", f"n{i}/0", releasing=True) for i in range(2)]
    nodes = [node(f"n{i}", gpus=1) for i in range(2)]
    made = Asking(snapshot(nodes=nodes, queues=queues("b", "other", *names), holding=gone))
    sizes = count(1)
    for name in names:
        for _ in range(times):
            assert made.find(job("w", name, pods(gpus=2, cores=next(sizes) / 1000))) is None
    assert made.find(job("last", asks)) == expected


def test_what_a_quick_no_spares_is_no_search() -> None:
    """Of so many, none could have devices enough whoever went; behind them is one that could."""
    names = [f"p{i}" for i in range(MOST_SEARCHES // 16 + 1)]
    holding = [runs(f"of-{name}", name, f"n1/{nth}") for nth, name in enumerate(names)]
    holding.append(runs("low", "last", f"n1/{len(names)}"))
    nodes = [node("n1", gpus=len(holding))]
    made = Asking(snapshot(nodes=nodes, queues=queues("last", *names), holding=holding))
    sizes = count(1)
    for name in names:
        for _ in range(16):
            sized = pods(gpus=2, cores=next(sizes) / 1000)
            assert made.find(job("w", name, sized, priority=1)) is None
    assert made.find(job("w", "last", priority=1)) == ["low"]
