"""Which cluster work starts in, and what is told of the choice."""

from dataclasses import replace

from scheduler.core.plan import Choice, Landing, PassedFor, Verdict
from scheduler.core.snapshot import ClusterView, HoldingView, PendingView, Snapshot
from scheduler.core.units import ClusterId
from tests.core.build import (
    A30,
    AT,
    Quota,
    cluster,
    decide,
    job,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.node.test_any_order import QUEUE, any_of, first, tight

PLENTY = queue("a", h100=Quota(100, borrow=None), a30=Quota(100, borrow=None))


def fleet(
    *clusters: ClusterView, pending: PendingView, holding: tuple[HoldingView, ...] = ()
) -> Snapshot:
    return snapshot(clusters=clusters, queues=[PLENTY], pending=[pending], holding=holding)


def of(gpus: int, name: str, *, usable: bool = True) -> ClusterView:
    return cluster(name, [node(f"{name}-n", gpus=gpus)], usable=usable)


def choice(of: Snapshot) -> Choice:
    [admit] = decide(of).plan.admits
    assert admit.choice is not None
    return admit.choice


def verdicts(of: Snapshot) -> list[tuple[str, str, int | None]]:
    """(cluster, verdict, free devices)"""
    return [
        (
            offer.cluster,
            offer.verdict,
            None if offer.free_milli is None else offer.free_milli // 1000,
        )
        for offer in choice(of).offers
    ]


def test_the_fullest_cluster_with_room_is_chosen_and_each_other_has_its_verdict() -> None:
    clusters = of(8, "large"), of(4, "middle"), of(1, "small"), of(8, "lost", usable=False)
    wanted = job("w", "a", pods(2), clusters="large middle small lost")
    assert verdicts(fleet(*clusters, of(9, "other"), pending=wanted)) == [
        ("middle", Verdict.CHOSEN, 4),
        ("small", Verdict.FULL, 1),
        ("large", Verdict.EMPTIER, 8),
        ("lost", Verdict.UNUSABLE, None),
        ("other", Verdict.NOT_ACCEPTED, None),
    ]


def test_where_it_starts_in_part_the_most_of_it_is_chosen() -> None:
    wanted = job("w", "a", pods(8, least=1))
    assert verdicts(fleet(of(2, "two"), of(3, "three"), of(0, "none"), pending=wanted)) == [
        ("three", Verdict.CHOSEN, 3),
        ("none", Verdict.FULL, 0),
        ("two", Verdict.NO_MORE, 2),
    ]


def test_where_nothing_was_to_choose_nothing_is_told() -> None:
    [admit] = decide(fleet(of(2, "one"), pending=job("w", "a", pods()))).plan.admits
    assert admit.choice is None


def test_it_starts_in_the_first_cycle_in_which_any_cluster_has_room() -> None:
    """A cluster that is full now is not waited for, however well it would pack."""
    full = runs("r", "a", *(f"near-n/{i}" for i in range(2)))
    of_two = fleet(of(2, "near"), of(8, "far"), pending=job("w", "a", pods()), holding=(full,))
    assert verdicts(of_two)[0] == ("far", Verdict.CHOSEN, 8)


def test_preferred_flavors_that_were_passed_over_say_why() -> None:
    both = cluster("c1", [node("n1", gpus=1), node("n2", gpus=1, model=A30)])
    wanted = job("w", "a", pods(flavors="h100 a30"))
    full = fleet(both, pending=wanted, holding=(runs("r", "a", "n1/0"),))
    assert [(p.flavors, p.why) for p in choice(full).passed] == [(("h100",), PassedFor.ROOM)]
    queues = (queue("a", h100=0, a30=Quota(0, borrow=None)), queue("b", h100=1, a30=1))
    without = replace(fleet(both, pending=wanted), queues=queues)
    assert [(p.flavors, p.why) for p in choice(without).passed] == [(("h100",), PassedFor.LIMIT)]
    [admit] = decide(fleet(both, pending=wanted)).plan.admits
    assert admit.choice is None  # the first choice was taken, and there is one cluster


def test_who_is_guaranteed_a_later_flavor_does_not_borrow_the_first() -> None:
    both = cluster("c1", [node("n1", gpus=1), node("n2", gpus=1, model=A30)])
    wanted = job("w", "a", pods(flavors="h100 a30"))
    queues = (queue("a", h100=Quota(0, borrow=None), a30=1), queue("b", h100=1))
    told = choice(replace(fleet(both, pending=wanted), queues=queues)).passed
    assert [(p.flavors, p.why) for p in told] == [(("h100",), PassedFor.GUARANTEE)]


def test_of_flavors_that_are_as_welcome_the_dearer_were_passed_over() -> None:
    wanted = any_of(pods(flavors="a30share t4share", share=0.35))
    told = choice(first(wanted, replace(tight(), pending=(), queues=(QUEUE,)))).passed
    assert [(p.flavors, p.why) for p in told] == [(("a30share",), PassedFor.PRICE)]


def test_who_lands_is_told_that_its_places_were_kept() -> None:
    before = fleet(of(2, "one"), of(2, "two"), pending=job("w", "a", pods()))
    [admit] = decide(before).plan.admits
    landing = Landing(admit.workload, ClusterId("two"), admit.places, AT)
    places = tuple(replace(place, node=before.clusters[1].nodes[0].id) for place in admit.places)
    spans = tuple(
        replace(p, spans=((before.clusters[1].nodes[0].devices[0].id, p.spans[0][1]),))
        for p in places
    )
    landed = choice(replace(before, landings=(replace(landing, places=spans),)))
    assert landed == Choice(kept=True)
