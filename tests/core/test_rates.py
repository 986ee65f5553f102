"""Of clusters that charge differently the cheaper one goes first, and that is told."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.core import cycle
from scheduler.core.cycle import plan
from scheduler.core.memory import Memory
from scheduler.core.plan import Verdict
from scheduler.core.policy import Policy
from scheduler.core.rates import Rates, RateView
from scheduler.core.snapshot import HoldingView, PendingView, PodSetView, Snapshot
from scheduler.core.units import ClusterId, FlavorId
from tests.core.admitting.test_choice import choice, fleet, of
from tests.core.build import A30, Quota, cluster, decide, job, node, pods, queue, runs, snapshot
from tests.core.drawn.fleets import snapshots
from tests.core.drawn.rated import rates

DEAR, CHEAP = ClusterId("dear"), ClusterId("cheap")
CHARGED = rates(dear={"h100": 3}, cheap={"h100": 2.5})
WITH_A30 = tuple(
    cluster(name, [node(name, gpus=2), node(f"{name}3", gpus=2, model=A30)])
    for name in (DEAR, CHEAP)
)


def two(
    *asks: PodSetView,
    charged: tuple[RateView, ...] = CHARGED,
    holding: tuple[HoldingView, ...] = (),
    cheap: int = 8,
    dear: int = 2,
) -> Snapshot:
    """The dear cluster is the fuller one, so that it is asked first where both charge the same."""
    wanted: PendingView = job("w", "a", *asks)
    made = fleet(of(cheap, "cheap"), of(dear, "dear"), pending=wanted, holding=holding)
    return replace(made, rates=charged)


def told(of: Snapshot) -> list[tuple[str, str, float | None]]:
    """(cluster, verdict, what is charged an hour)"""
    return [
        (o.cluster, o.verdict, None if o.nano_per_hour is None else o.nano_per_hour / 10**9)
        for o in choice(of).offers
    ]


def test_the_cheaper_cluster_is_taken_though_more_is_free_there() -> None:
    assert told(two(pods(2))) == [("cheap", Verdict.CHOSEN, 5), ("dear", Verdict.DEARER, 6)]


def test_the_dearer_one_is_taken_where_the_cheaper_has_no_room() -> None:
    """It starts in this plan: nobody waits for what is cheaper."""
    full = runs("r", "a", *(f"cheap-n/{i}" for i in range(7)), in_cluster="cheap")
    assert told(two(pods(2), holding=(full,))) == [
        ("dear", Verdict.CHOSEN, 6),
        ("cheap", Verdict.FULL, 5),
    ]


@pytest.mark.parametrize(
    "charged", [(), rates(dear={"h100": 2}, cheap={"h100": 2}), rates(cheap={"a30": 1})]
)
def test_of_those_as_cheap_the_one_with_least_free_is_taken(
    charged: tuple[RateView, ...],
) -> None:
    offers = choice(two(pods(2), charged=charged)).offers
    assert [(o.cluster, o.verdict) for o in offers] == [
        (DEAR, Verdict.CHOSEN),
        (CHEAP, Verdict.EMPTIER),
    ]


def test_where_no_rate_is_known_comes_last() -> None:
    """Nobody knows what will be charged there."""
    known = rates(cheap={"h100": 900})
    assert told(two(pods(), charged=known)) == [
        ("cheap", Verdict.CHOSEN, 900),
        ("dear", Verdict.DEARER, None),
    ]


def test_a_dearer_cluster_with_nothing_free_is_told_as_full() -> None:
    assert told(two(pods(), dear=0)) == [("cheap", Verdict.CHOSEN, 2.5), ("dear", Verdict.FULL, 3)]


def test_all_of_a_gang_in_the_dearer_cluster_comes_before_a_part_of_it() -> None:
    gang = pods(4, least=1)
    assert told(two(gang, cheap=3, dear=8)) == [
        ("dear", Verdict.CHOSEN, 12),
        ("cheap", Verdict.NO_MORE, 10),
    ]
    assert told(two(gang, cheap=3, dear=3))[0] == ("cheap", Verdict.CHOSEN, 10)
    assert told(two(gang, cheap=2, dear=3))[0] == ("dear", Verdict.CHOSEN, 12)


def test_the_order_of_flavors_comes_before_what_they_are_charged() -> None:
    charged = rates(dear={"h100": 9, "a30": 1}, cheap={"h100": 8, "a30": 1})
    made = two(pods(flavors="h100 a30"), charged=charged)
    [admit] = decide(replace(made, clusters=WITH_A30)).plan.admits
    assert (admit.cluster, admit.places[0].flavor) == (CHEAP, "h100")


@pytest.mark.parametrize(
    ("a30", "expected"),
    [(1, [("dear", "chosen", 7), ("cheap", "dearer", 7.5)]), (2, [("cheap", "chosen", 7.5)])],
)
def test_a_gang_of_two_flavors_goes_where_both_together_are_cheapest(
    a30: float, expected: list[tuple[str, str, float]]
) -> None:
    """Two H100s at 3 beside an A30 at 1 or 2, or at 2.5 each."""
    charged = rates(dear={"h100": 3, "a30": a30}, cheap={"h100": 2.5, "a30": 2.5})
    both = two(pods(2), pods(flavors="a30", name="x"), charged=charged)
    assert told(replace(both, clusters=WITH_A30))[: len(expected)] == expected


def test_who_is_not_accepted_is_not_taken_for_being_cheap() -> None:
    wanted = job("w", "a", pods(), clusters="dear")
    made = replace(two(pods()), pending=(wanted,))
    assert told(made) == [("dear", Verdict.CHOSEN, 3), ("cheap", Verdict.NOT_ACCEPTED, 2.5)]


def test_it_waits_for_the_cheaper_of_two_clusters_that_come_free() -> None:
    """And leaves the other, the first by its id, to who comes next."""
    leave = [
        runs(f"r-{name}", "a", f"{name}-n/0", in_cluster=name, releasing=True) for name in "xy"
    ]
    wanted, next_one = job("w", "a", pods()), job("v", "a", pods(), clusters="x", submitted_at=1)
    made = fleet(of(1, "x"), of(1, "y"), pending=wanted, holding=tuple(leave))
    charged = rates(x={"h100": 2}, y={"h100": 1})
    waits = decide(replace(made, rates=charged, pending=(wanted, next_one)))
    assert waits.waits("w")
    assert waits.waits("v")


def test_least_harm_comes_before_what_is_charged() -> None:
    """Where it has to evict, it goes by what that loses."""
    asks = pods()
    long, short = (
        runs(f"r-{name}", "b", f"{name}-n/0", in_cluster=name, since_s=since_s, of=asks)
        for name, since_s in (("x", 9000), ("y", 100))
    )
    made = fleet(of(1, "x"), of(1, "y"), pending=job("w", "a", asks), holding=(long, short))
    queues = queue("a", h100=2), queue("b", h100=Quota(0, borrow=None))
    cheaper_where_it_hurts = rates(x={"h100": 1}, y={"h100": 2})
    for charged in ((), cheaper_where_it_hurts):
        assert decide(replace(made, queues=queues, rates=charged)).victims() == [
            ("r-y", "w", "reclaim")
        ]


@settings(deadline=None)
@given(snapshots(12))
def test_rates_that_are_the_same_everywhere_change_nothing(of: Snapshot) -> None:
    same = tuple(RateView(f.id, c.id, 7) for f in of.flavors for c in of.clusters)
    policy = Policy(guard_s=0, max_admits=10**9)
    assert plan(replace(of, rates=same), policy) == plan(replace(of, rates=()), policy)


def test_sums_of_money_are_exact_whatever_their_size() -> None:
    amounts = ((FlavorId("h100"), 10**15), (FlavorId("t4"), 1))
    known = Rates(rates(dear={"h100": 999_999, "t4": 0.000001}, cheap={"h100": 999_999, "t4": 0}))
    assert known.hourly(amounts) == {DEAR: 999_999 * 10**21 + 1, CHEAP: 999_999 * 10**21}


def test_a_rate_that_is_listed_twice_is_the_higher_one_in_any_order() -> None:
    twice = (*rates(dear={"h100": 3}), *rates(dear={"h100": 2}))
    amounts = ((FlavorId("h100"), 1000),)
    assert Rates(twice).hourly(amounts) == Rates(twice[::-1]).hourly(amounts) == {DEAR: 3 * 10**9}


def test_a_rate_that_changes_counts_in_the_next_plan() -> None:
    clusters = [cluster(name, [node(f"{name}-n", gpus=4)]) for name in "xy"]
    waits = [job("w", "a", pods()), job("v", "a", pods())]
    of = snapshot(clusters=clusters, queues=[queue("a", h100=8)], pending=waits)
    memory, where = Memory(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle, "LEAST_SWEPT", 1)
        for x in (1, 3, 1):
            now = replace(of, rates=rates(x={"h100": x}, y={"h100": 2}))
            made = plan(now, Policy(), memory)
            assert made == plan(now, Policy())
            where.append({admit.cluster for admit in made.admits})
    assert where == [{"x"}, {"y"}, {"x"}]
