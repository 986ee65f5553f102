"""Evictions and kept room beside a reservation: what it would lack is taken by neither."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.cycle import plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import ReasonCode
from scheduler.core.snapshot import HoldingView, NodeView, PendingView, ReservationView, Snapshot
from tests.core.bounds.test_windows import HOUR, window
from tests.core.build import AT, T4, Outcome, Quota, decide, job, node, pods, queue, runs, snapshot

RESERVED = ReasonCode.RESERVED


def fleet(
    *pending: PendingView,
    windows: Sequence[ReservationView] = (),
    holding: Sequence[HoldingView] = (),
    nodes: Sequence[NodeView] = (),
) -> Snapshot:
    """Eight H100s, six of them project a's and two b's, which may borrow what is free."""
    of = snapshot(
        nodes=nodes or [node("n1", gpus=8)],
        queues=[
            queue("a", h100=6),
            queue("b", h100=Quota(2, None)),
            queue("c", h100=Quota(0, None)),
        ],
        pending=pending,
        holding=holding,
    )
    return replace(of, reservations=tuple(windows))


def borrowing(count: int, *, limit_s: int | None = None) -> list[HoldingView]:
    return [runs(f"r{i}", "b", f"n1/{i}", limit_s=limit_s) for i in range(count)]


def then(of: Snapshot, made: Outcome) -> Outcome:
    """The next plan, once all who were evicted have gone."""
    gone = {victim for victim, *_ in made.victims()}
    return decide(replace(of, holding=tuple(h for h in of.holding if h.id not in gone)))


class TestReclaim:
    @pytest.mark.parametrize(("held", "victims"), [(6, 3), (5, 2), (4, 1)])
    def test_as_many_go_as_it_takes_beside_what_is_reserved(self, held: int, victims: int) -> None:
        of = fleet(job("w", "a", pods(3)), windows=[window(2, owner="c")], holding=borrowing(held))
        made = decide(of)
        assert (len(made.victims()), made.waits("w")) == (victims, True)
        assert then(of, made).started() == ["w"]

    def test_nobody_goes_for_one_that_lacks_already(self) -> None:
        made = decide(fleet(job("w", "a"), windows=[window(1, owner="c")], holding=borrowing(8)))
        assert (made.victims(), made.reason("w")) == ([], RESERVED)
        assert made.numbers("w") == {
            "flavor": "h100", "kept_milli": 1000, "lacking_milli": 1000, "opens_in_s": HOUR,
        }  # fmt: skip

    def test_nobody_goes_where_no_more_may_go_than_would_leave_it_lacking(self) -> None:
        """Of six only four may go, and two are free."""
        asked, reserved = job("w", "a", pods(5)), [window(2, owner="c")]
        made = decide(fleet(asked, windows=reserved, holding=borrowing(6)))
        assert (made.victims(), made.reason("w")) == ([], RESERVED)
        assert len(decide(fleet(asked, holding=borrowing(6))).victims()) == 3

    def test_who_would_have_ended_in_time_stays_and_another_goes(self) -> None:
        """It would do less harm, but the reservation counts on it."""
        ends = runs("ends", "b", "n1/7", limit_s=HOUR)
        others = [replace(r, started_at=AT - 100) for r in borrowing(7)]
        of = fleet(job("w", "a"), windows=[window(1, owner="c")], holding=[ends, *others])
        assert [victim for victim, *_ in decide(replace(of, reservations=())).victims()] == [
            "ends"
        ]
        made = decide(of)
        assert [victim for victim, *_ in made.victims()] == ["r0"]
        assert then(of, made).started() == ["w"]

    @pytest.mark.parametrize(("limit_s", "victims"), [(HOUR, 1), (HOUR + 1, 0), (None, 0)])
    def test_where_all_would_have_ended_in_time_who_goes_on_evicts_nobody(
        self, limit_s: int | None, victims: int
    ) -> None:
        asked = job("w", "a", limit_s=limit_s)
        held = borrowing(8, limit_s=HOUR)
        made = decide(fleet(asked, windows=[window(8, owner="c")], holding=held))
        assert len(made.victims()) == victims
        assert made.reason("w") is (RESERVED if not victims else ReasonCode.WAITING_FOR_PREEMPTION)

    @pytest.mark.parametrize(("amount", "victims"), [(7, 1), (8, 0)])
    def test_whom_it_is_for_gives_up_what_is_beyond_it(self, amount: int, victims: int) -> None:
        made = decide(
            fleet(job("w", "a"), windows=[window(amount, owner="b")], holding=borrowing(8))
        )
        assert len(made.victims()) == victims

    def test_whom_it_is_for_may_evict_its_own(self) -> None:
        urgent = job("w", "b", priority=9)
        of = fleet(urgent, windows=[window(8, owner="b")], holding=borrowing(8))
        made = decide(of)
        assert len(made.victims()) == 1
        assert then(of, made).started() == ["w"]

    def test_nobody_goes_who_holds_what_is_reserved_for_it_where_nothing_new_starts(self) -> None:
        """On a node that is out; what it gives up there is lacking then."""
        gang = runs("r", "c", "n2/0")
        gang = replace(
            gang, placements=(*gang.placements, *runs("s", "c", "t/0", flavor="t4").placements)
        )
        out = [node("n2", gpus=1, usable=False), node("t", gpus=1, model=T4)]
        of = fleet(job("w", "a", pods(flavors="t4")), holding=[gang], nodes=out)
        shared = queue("a", t4=1), queue("c", t4=Quota(0, None), h100=1)
        of = replace(of, queues=shared)
        assert len(decide(of).victims()) == 1
        made = decide(replace(of, reservations=(window(1, owner="c"),)))
        assert (made.victims(), made.reason("w")) == ([], RESERVED)

    def test_a_window_far_ahead_keeps_nobody_without_a_limit_from_it(self) -> None:
        reserved = [window(1, owner="c", opens=20 * HOUR)]
        made = decide(fleet(job("w", "a"), windows=reserved, holding=borrowing(8)))
        assert len(made.victims()) == 1

    def test_pods_that_go_one_by_one_are_counted_too(self) -> None:
        gang = runs("g", "b", *(f"n1/{i}" for i in range(6)), of=pods(6, least=1))
        of = fleet(job("w", "a", pods(3)), windows=[window(2, owner="c")], holding=[gang])
        [shrink] = decide(of).plan.shrinks
        assert len(shrink.placements) == 3


class TestLaterInThePlan:
    def test_the_second_of_two_may_not_take_what_the_first_has_left(self) -> None:
        """The first takes three of four that may go; the second needs one that is reserved."""
        both = job("w1", "a", pods(3)), job("w2", "a", pods(2), submitted_at=1)
        of = fleet(*both, windows=[window(2, owner="c")], holding=borrowing(6))
        made = decide(of)
        assert {by for _, by, _ in made.victims()} == {"w1"}
        assert made.reason("w2") is RESERVED
        assert not decide(replace(of, reservations=())).holds.keys() - {"w1", "w2"}

    def _evicts_an_owner(self, *pending: PendingView) -> Snapshot:
        """What c's gives up is kept for it on the one device that stays free."""
        return fleet(
            job("w", "a", pods(gpus=2), priority=9),
            *pending,
            windows=[window(1, owner="c")],
            holding=[
                runs("r", "c", "n1/0"),
                runs("other", "a", "n1/2", "n2/1"),
            ],
            nodes=[node("n1", gpus=3), node("n2", gpus=2)],
        )

    def test_a_start_takes_nothing_that_a_reservation_needs_once_the_victims_are_gone(
        self,
    ) -> None:
        of = self._evicts_an_owner(job("x", "a"))
        made = decide(of)
        assert [victim for victim, *_ in made.victims()] == ["r"]
        assert (made.started(), made.reason("x")) == ([], RESERVED)
        assert decide(self._evicts_an_owner(job("x", "a", limit_s=HOUR))).started() == ["x"]


class TestKeptRoom:
    GUARD = Policy(preemption=False, guard_s=60)

    def kept(self, asked: PendingView, *reserved: ReservationView, ends_s: int) -> Outcome:
        """Four devices come free in ten minutes, and the other four after so long."""
        first = runs("r0", "b", *(f"n1/{i}" for i in range(4)), limit_s=600)
        second = runs("r1", "b", *(f"n1/{i}" for i in range(4, 8)), limit_s=ends_s)
        of = fleet(asked, windows=reserved, holding=[first, second])
        of = replace(of, queues=(queue("a", h100=8), queue("b", h100=8), queue("c", h100=8)))
        return Outcome(plan(of, self.GUARD))

    @pytest.mark.parametrize(("amount", "ends_s", "kept"), [
        (4, HOUR, True), (4, HOUR + 1, False), (5, HOUR, False),
    ])  # fmt: skip
    def test_it_is_kept_where_the_reservation_lacks_nothing_when_it_starts(
        self, amount: int, ends_s: int, kept: bool
    ) -> None:
        made = self.kept(job("w", "a", pods(4)), window(amount, owner="c"), ends_s=ends_s)
        assert made.reason("w") is (ReasonCode.ROOM_KEPT if kept else RESERVED)
        assert bool(made.plan.keeps) == kept

    def test_who_may_not_start_then_is_told_what_is_kept_and_from_when(self) -> None:
        made = self.kept(job("w", "a", pods(4)), window(5, owner="c"), ends_s=HOUR)
        assert made.numbers("w") == {
            "flavor": "h100", "kept_milli": 5000, "lacking_milli": 1000, "opens_in_s": HOUR,
        }  # fmt: skip

    def test_it_counts_its_limit_from_its_start(self) -> None:
        for limit_s, reason in (HOUR - 600, ReasonCode.ROOM_KEPT), (HOUR - 599, RESERVED):
            asked = job("w", "a", pods(4), limit_s=limit_s)
            made = self.kept(asked, window(8, owner="c"), ends_s=HOUR)
            assert made.reason("w") is reason

    @pytest.mark.parametrize(("amount", "reason"), [
        (4, ReasonCode.ROOM_KEPT), (5, RESERVED),
    ])  # fmt: skip
    def test_nor_is_what_a_reservation_needs_till_then_kept_idle(
        self, amount: int, reason: ReasonCode
    ) -> None:
        """It starts when the window is over, and two of its devices are free from now on."""
        long = runs("r", "b", *(f"n1/{i}" for i in range(2)), limit_s=3 * HOUR)
        of = fleet(
            job("w", "a", pods(gpus=4)),
            windows=[window(amount, owner="c")],
            holding=[long],
            nodes=[node("n1", gpus=4), node("n2", gpus=2), node("n3", gpus=2)],
        )
        assert Outcome(plan(of, self.GUARD)).reason("w") is reason


def test_its_owner_waits_for_what_comes_back_though_its_like_of_another_may_not() -> None:
    of = fleet(
        job("other", "a"),
        job("mine", "b", submitted_at=1),
        windows=[window(1, owner="b")],
        holding=[runs("gone", "c", "n1/0", releasing=True)],
        nodes=[node("n1", gpus=1)],
    )
    made = decide(of)
    assert made.reason("other") is RESERVED
    assert made.waits("mine")
