"""Reservations: what is kept for a project in a window, and what may run before and beside it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import plan
from scheduler.core.laws.invariants import violations
from scheduler.core.plan import Place
from scheduler.core.policy import Policy
from scheduler.core.reasons import describe
from scheduler.core.simulating.estimate import Basis, forecast
from scheduler.core.snapshot import (
    DeviceMode,
    FlavorKind,
    FlavorView,
    HeldView,
    HoldingView,
    Isolation,
    NodeView,
    PendingView,
    QuotaView,
    ReservationView,
    Snapshot,
)
from scheduler.core.units import CohortId, FlavorId, ProjectId
from tests.core.build import (
    AT,
    BY_NAME,
    T4,
    Outcome,
    decide,
    job,
    milli,
    node,
    pods,
    queue,
    runs,
    snapshot,
)
from tests.core.drawn.fleets import PROJECTS, shuffled, snapshots

HOUR = 3600


def window(
    amount: float,
    *,
    opens: int = HOUR,
    lasts: int = HOUR,
    owner: str = "a",
    flavor: str = "h100",
    horizon: int = 10 * HOUR,
    above: str | None = None,
) -> ReservationView:
    """In seconds from now on; for the cohort `above`, if there is one."""
    return ReservationView(
        ProjectId(owner) if above is None else None,
        FlavorId(flavor),
        milli(amount),
        AT + opens,
        AT + opens + lasts,
        AT + opens - horizon,
        None if above is None else CohortId(above),
    )


def fleet(
    *pending: PendingView,
    windows: Sequence[ReservationView],
    holding: Sequence[HoldingView] = (),
    nodes: Sequence[NodeView] = (),
) -> Snapshot:
    """Eight H100s, of which projects a and b may each use all."""
    of = snapshot(
        nodes=nodes or [node("n1", gpus=8)],
        queues=[queue(p, h100=8, t4=8, t4share=8, cpu=64) for p in ("a", "b")],
        pending=pending,
        holding=holding,
    )
    return replace(of, reservations=tuple(windows))


def starts(*pending: PendingView, windows: Sequence[ReservationView], **of: object) -> Outcome:
    return decide(fleet(*pending, windows=windows, **of))  # type: ignore[arg-type]  # as `fleet`


class TestBeforeTheWindow:
    @pytest.mark.parametrize(("limit_s", "started"), [(None, 3), (HOUR + 1, 3), (HOUR, 8)])
    def test_only_what_ends_before_it_may_use_what_it_needs(
        self, limit_s: int | None, started: int
    ) -> None:
        asked = [job(f"w{i}", "b", submitted_at=i, limit_s=limit_s) for i in range(9)]
        made = starts(*asked, windows=[window(5)])
        assert len(made.started()) == started

    @pytest.mark.parametrize(("horizon", "started"), [(HOUR, 3), (HOUR - 1, 8)])
    def test_one_that_is_far_ahead_keeps_work_without_a_limit_waiting_for_its_horizon_alone(
        self, horizon: int, started: int
    ) -> None:
        asked = [job(f"w{i}", "b", submitted_at=i) for i in range(9)]
        assert len(starts(*asked, windows=[window(5, horizon=horizon)]).started()) == started

    def test_however_far_ahead_work_that_says_it_runs_into_it_waits(self) -> None:
        asked = [job(f"w{i}", "b", submitted_at=i, limit_s=HOUR + 1) for i in range(9)]
        assert len(starts(*asked, windows=[window(5, horizon=0)]).started()) == 3

    def test_what_runs_without_a_limit_keeps_nobody_else_from_what_is_left(self) -> None:
        held = runs("r", "b", *(f"n1/{i}" for i in range(5)))
        short = [job(f"w{i}", "b", submitted_at=i, limit_s=HOUR) for i in range(4)]
        made = starts(*short, windows=[window(5, horizon=0)], holding=[held])
        assert len(made.started()) == 3

    def test_who_waits_for_it_is_told_what_is_kept_and_from_when(self) -> None:
        made = starts(job("w", "b", pods(4)), windows=[window(5)])
        assert made.numbers("w") == {
            "flavor": "h100", "kept_milli": 5000, "lacking_milli": 1000, "opens_in_s": HOUR,
        }  # fmt: skip
        assert describe(made.hold("w").reason) == (
            "It would run into a reservation: in 60 min 5 h100 are kept for others, and with it"
            " 1 of them would be missing. With a run-time limit that ends before it may start."
        )

    def test_a_like_with_a_shorter_limit_is_tried(self) -> None:
        long, short = job("long", "b"), job("short", "b", submitted_at=1, limit_s=HOUR)
        assert starts(long, short, windows=[window(8)]).started() == ["short"]

    def test_its_owner_may_begin_early(self) -> None:
        own, other = job("own", "a", pods(5)), job("other", "b", pods(3))
        assert starts(own, other, windows=[window(5)]).started() == ["other", "own"]

    @pytest.mark.parametrize(("limit_s", "started"), [(HOUR, ["w"]), (HOUR + 1, []), (None, [])])
    def test_what_surely_ends_by_then_counts_as_free(
        self, limit_s: int | None, started: list[str]
    ) -> None:
        held = runs("r", "b", *(f"n1/{i}" for i in range(5)), limit_s=limit_s)
        made = starts(job("w", "b"), windows=[window(5)], holding=[held])
        assert made.started() == started

    @pytest.mark.parametrize(
        "where",
        [[], [node("n2", gpus=2, usable=False)], [node("n2")]],
        ids=["node gone", "node out", "devices gone"],
    )
    def test_what_ends_where_nothing_new_starts_gives_nothing_back(
        self, where: list[NodeView]
    ) -> None:
        held, asked = runs("r", "b", "n2/0", "n2/1", limit_s=HOUR), job("w", "b")
        five = node("n1", gpus=5)
        made = starts(asked, windows=[window(5)], holding=[held], nodes=[five, *where])
        assert made.started() == []
        well = [five, node("n2", gpus=2)]
        assert starts(asked, windows=[window(5)], holding=[held], nodes=well).started() == ["w"]

    def test_one_that_overlaps_adds_up_and_one_that_is_over_by_then_does_not(self) -> None:
        first, later = window(4), window(4, opens=2 * HOUR)
        both = window(4, opens=HOUR + 60)
        asked = job("w", "b", pods(2))
        assert starts(asked, windows=[first, later]).started() == ["w"]
        assert starts(asked, windows=[first, both]).started() == []


class TestInTheWindow:
    def test_only_its_owners_work_starts_on_what_it_needs(self) -> None:
        opened = [window(8, opens=-60)]
        assert starts(job("w", "b", limit_s=1), windows=opened).started() == []
        made = starts(job("own", "a", pods(8)), job("w", "b", limit_s=1), windows=opened)
        assert made.started() == ["own"]

    def test_what_its_owner_holds_is_not_kept_twice(self) -> None:
        held = runs("r", "a", "n1/0", "n1/1")
        made = starts(job("w", "b", pods(3)), windows=[window(5, opens=-60)], holding=[held])
        assert made.started() == ["w"]

    def test_a_reservation_that_lacks_already_keeps_its_owner_from_nothing(self) -> None:
        held = runs("r", "b", "n1/0", "n1/1")
        made = starts(
            job("own", "a"), job("w", "b"), windows=[window(8, opens=-60)], holding=[held]
        )
        assert made.started() == ["own"]

    def test_after_it_nothing_is_kept(self) -> None:
        assert starts(job("w", "b"), windows=[window(8, opens=-HOUR)]).started() == ["w"]


def test_other_hardware_is_not_kept_and_a_share_of_what_is_kept_is() -> None:
    nodes = [node("n1", gpus=2), node("n2", gpus=1, model=T4, shares=Isolation.MEMORY)]
    share = job("share", "b", pods(share=0.5, flavors="t4share"))
    whole = job("whole", "b")
    assert starts(share, whole, windows=[window(2)], nodes=nodes).started() == ["share"]
    made = starts(share, whole, windows=[window(1, flavor="t4")], nodes=nodes)
    assert made.started() == ["whole"]


def test_nobody_is_evicted_for_what_would_run_into_it() -> None:
    held = [runs(f"r{i}", "b", f"n1/{i}", priority=-1) for i in range(8)]
    urgent = job("w", "b", priority=9)
    assert starts(urgent, windows=[], holding=held).victims()
    assert not starts(urgent, windows=[window(1)], holding=held).victims()
    short = replace(urgent, run_time_limit_s=60)
    assert starts(short, windows=[window(1)], holding=held).victims()


def test_nobody_is_evicted_for_other_work_of_whom_it_is_for() -> None:
    """What its victim held of the reservation would lack, so it would not start in its stead: the
    victim would again, and be evicted again."""
    of = fleet(
        job("w", "b", pods(flavors="7g"), priority=9),
        windows=[window(1, owner="b", opens=0, flavor="3g")],
        holding=[runs("r", "b", "n1/0", flavor="3g", span=(4, 8), priority=-1)],
        nodes=[node("n1", gpus=1, dynamic=True)],
    )
    quotas = (QuotaView(FlavorId("3g"), 8000), QuotaView(FlavorId("7g"), 8000))
    of = replace(of, queues=(replace(queue("b"), quotas=quotas),))
    assert decide(replace(of, reservations=())).victims()
    assert not decide(of).victims()
    [asks] = of.pending
    like = replace(asks, pod_sets=(replace(asks.pod_sets[0], flavors=(FlavorId("3g"),)),))
    small = [node("n1", gpus=1, cut=[("3g.40gb", 4, 8)])]
    made = decide(replace(of, pending=(like,), clusters=fleet(windows=[], nodes=small).clusters))
    assert made.victims()


def test_the_head_that_waits_for_it_keeps_no_quota_from_those_behind_it() -> None:
    long, short = job("long", "b", priority=5), job("short", "b", limit_s=60)
    assert starts(long, short, windows=[window(8)]).started() == ["short"]


def test_what_it_keeps_waiting_has_no_estimate() -> None:
    of = fleet(job("w", "b"), job("x", "b", limit_s=60), windows=[window(8)])
    found = forecast(snapshot=of, policy=Policy(), run_times={}, passes=3, seed=1)
    assert [(f.workload, f.basis) for f in found] == [("w", Basis.NONE), ("x", Basis.PLAN)]


def reserved(of: Snapshot, seed: int) -> Snapshot:
    pick = Random(seed)
    windows = tuple(
        window(
            pick.choice([1, 2, 3]),
            opens=pick.choice([-60, 60, 200, 600]),
            lasts=pick.choice([120, 1000]),
            owner=pick.choice(PROJECTS),
            flavor=pick.choice(["h100", "t4"]),
            above=pick.choice([None, None, *(cohort.id for cohort in of.cohorts)]),
        )
        for _ in range(pick.randint(1, 4))
    )
    return replace(of, reservations=windows)


def counts_for(of: Snapshot, project: ProjectId) -> list[str]:
    """Whose reservations what the project holds counts towards, in this order."""
    parents = {cohort.id: cohort.parent for cohort in of.cohorts}
    found: list[str] = [project]
    above = next(queue.cohort for queue in of.queues if queue.project == project)
    while above:
        found.append(above)
        above = parents[above]
    return found


@settings(max_examples=300, deadline=None)
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_no_plan_takes_more_from_a_reservation_than_others_had_taken(
    of: Snapshot, seed: int
) -> None:
    """Device by device: of each flavor that is reserved, when each window of it opens, or now.

    Without evictions: what waits for one holds places that the plan does not tell of.
    """
    of = reserved(of, seed)
    by_id = {p.id: p for p in of.pending}
    admits = decide(of, preemption=False).plan.admits
    before: list[_Work] = [
        (h.project, h.placements, _ends(h.started_at, h.run_time_limit_s)) for h in of.holding
    ]
    new: list[_Work] = [
        (by_id[a.workload].project, a.places, _ends(AT, by_id[a.workload].run_time_limit_s))
        for a in admits
    ]
    for flavor, moment in {(BY_NAME[w.flavor], max(AT, w.starts_at)) for w in of.reservations}:
        then = [work for work in (*before, *new) if work[2] is None or work[2] > moment]
        lacked = _wanted(of, flavor, moment, before) - _free(of, flavor, moment, before)
        lacks = _wanted(of, flavor, moment, [*before, *new]) - _free(of, flavor, AT, then)
        assert lacks <= max(0, lacked)


@settings(max_examples=100, deadline=None)
@given(of=snapshots(), seed=st.integers(0, 2**32))
def test_the_plan_is_lawful_and_the_same_whatever_the_order_of_the_input(
    of: Snapshot, seed: int
) -> None:
    of = reserved(of, seed)
    mixed = replace(shuffled(of, seed), reservations=of.reservations[::-1])
    made = plan(of, Policy())
    assert violations(of, made) == ()
    assert plan(mixed, Policy()) == made


type _Work = tuple[ProjectId, Sequence[Place | HeldView], int | None]


def _ends(since: int | None, limit_s: int | None) -> int | None:
    return None if limit_s is None else max(AT + 1, (AT if since is None else since) + limit_s)


def _wanted(of: Snapshot, flavor: FlavorView, moment: int, work: Sequence[_Work]) -> int:
    left: list[Kept] = [
        (w.project or w.cohort, w.amount_milli)
        for w in of.reservations
        if w.flavor == flavor.id and w.starts_at <= moment < w.ends_at
    ]
    for project, places, ends in work:
        for place in places:
            if place.flavor == flavor.id and (ends is None or ends > moment):
                left = less(left, counts_for(of, project), place.amount_milli)
    return sum(amount for _, amount in left)


type Kept = tuple[str | None, int]


def less(kept: Sequence[Kept], owners: Sequence[str], amount: int) -> list[Kept]:
    """What is still to be kept for each once so much more is held, which counts once."""
    found = list(kept)
    for of in owners:
        for nth, (owner, wanted) in enumerate(found):
            if owner == of:
                part = min(wanted, amount)
                found[nth] = owner, wanted - part
                amount -= part
    return found


def _free(of: Snapshot, flavor: FlavorView, moment: int, work: Sequence[_Work]) -> int:
    """Whole devices that nobody holds now, and what of the flavor has been given back by then."""
    assert flavor.kind is FlavorKind.WHOLE
    held = {device for _, places, _ in work for p in places for device, _ in p.spans}
    usable = {
        device.id
        for cluster in of.clusters
        for on in cluster.nodes
        for device in on.devices
        if cluster.usable and on.usable and device.usable and device.model == flavor.model
        if device.mode is DeviceMode.WHOLE
        if device.id not in {id for id, _ in on.foreign}
    }
    back = sum(
        place.amount_milli
        for _, places, ends in work
        for place in places
        if place.flavor == flavor.id and ends is not None and ends <= moment
        if {device for device, _ in place.spans} <= usable
    )
    return len(usable - held) * 1000 + back
