"""Who submitted work, and who administers the project, reorder what waits (ADR 0053)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from controlplane.audit.models import AuditEvent
from controlplane.kernel.errors import Conflict, Invalid, NotAllowed
from scheduler.core.admitting.order import place_in_queue
from scheduler.core.lifecycle import State
from scheduler.loop.checking.promises import RULES
from scheduler.models import Workload, WorkloadArray, WorkloadEvent
from scheduler.selectors import fleet, queues
from scheduler.selectors.load import load_here
from scheduler.services import reordering
from scheduler.services.reordering import Change, To
from tenants.access import Actor, actor_for
from tenants.models import Role, User
from tenants.services.quotas import VersionMismatch
from tests import factories
from tests.factories import AT
from tests.scheduler.stage import LATER, Stage
from tests.scheduler.waiting import RUN, end

FIRST, LAST = Change(to=To.FIRST), Change(to=To.LAST)


@pytest.fixture
def ben(stage: Stage) -> User:
    made = factories.user("ben")
    factories.member(made, Role.MEMBER, at=stage.project)
    return made


def wait(stage: Stage, by: User, *names: str, after_s: int = 0, **fields: Any) -> list[Workload]:
    """They wait, each submitted a second after the one before. Any: model fields."""
    return [
        factories.workload(
            stage.project,
            by,
            [stage.flavor],
            name,
            submitted_at=AT - timedelta(minutes=1) + timedelta(seconds=after_s + nth),
            **fields,
        )
        for nth, name in enumerate(names)
    ]


def order(stage: Stage) -> list[str]:
    """The names of all that wait, in the planner's order and as people are told."""
    pending = [p for p in load_here(at=AT).snapshot.pending if p.project == str(stage.project.id)]
    views = sorted(pending, key=place_in_queue)
    rows = {str(row.id): row for row in Workload.objects.filter(project=stage.project)}
    found = [rows[view.id].name for view in views]
    listed = queues.queue(project=stage.project).order_by(*queues.ORDER)
    assert [row.name for row in listed] == found
    places = [queues.position_of(rows[view.id]) for view in views]
    assert places == list(range(1, len(found) + 1))
    return found


def reorder(by: User, work: Workload | WorkloadArray, change: Change) -> None:
    reordering.reorder(actor=actor(by), work=work, change=change, at=LATER)


def actor(of: User) -> Actor:
    return actor_for(user=of)


class TestTurns:
    def test_a_member_exchanges_the_turns_of_own_work_and_of_nobody_elses(
        self, stage: Stage, ben: User
    ) -> None:
        own = [wait(stage, ben, f"ben-{n}", after_s=10 * n)[0] for n in range(3)]
        for n in range(3):
            wait(stage, stage.ada, f"ada-{n}", after_s=10 * n + 5)
        assert order(stage) == ["ben-0", "ada-0", "ben-1", "ada-1", "ben-2", "ada-2"]
        reorder(ben, own[2], FIRST)
        assert order(stage) == ["ben-2", "ada-0", "ben-0", "ada-1", "ben-1", "ada-2"]
        reorder(ben, own[0], LAST)
        assert order(stage) == ["ben-2", "ada-0", "ben-1", "ada-1", "ben-0", "ada-2"]
        reorder(ben, own[0], FIRST)
        assert order(stage) == ["ben-0", "ada-0", "ben-2", "ada-1", "ben-1", "ada-2"]

    def test_who_administers_the_project_moves_any_before_all(
        self, stage: Stage, ben: User
    ) -> None:
        wait(stage, stage.ada, "ada-0", "ada-1")
        [own] = wait(stage, ben, "ben-0", after_s=5)
        reorder(stage.ada, own, FIRST)
        assert order(stage) == ["ben-0", "ada-0", "ada-1"]

    def test_work_submitted_in_one_second_is_reordered_too(self, stage: Stage) -> None:
        [a] = wait(stage, stage.ada, "a")
        [b] = wait(stage, stage.ada, "b")
        reorder(stage.ada, b, FIRST)
        assert order(stage) == ["b", "a"]
        reorder(stage.ada, a, FIRST)
        assert order(stage) == ["a", "b"]

    def test_only_work_of_its_priority_and_project_is_passed(self, stage: Stage) -> None:
        other = factories.project(stage.project.tenant, "Other")
        factories.workload(other, stage.ada, [stage.flavor], "elsewhere", submitted_at=AT)
        wait(stage, stage.ada, "urgent", priority_class="urgent")
        _, last = wait(stage, stage.ada, "one", "two", after_s=1)
        reorder(stage.ada, last, FIRST)
        assert order(stage) == ["urgent", "two", "one"]
        assert not Workload.objects.filter(project=other, turn_at__isnull=False).exists()

    def test_an_array_is_moved_as_one_and_keeps_its_own_order(self, stage: Stage) -> None:
        wait(stage, stage.ada, "old")
        array = factories.array(stage.project, stage.ada, [stage.flavor], 3)
        running = array.elements.get(array_index=0)
        end(running, *RUN)
        reorder(stage.ada, array, FIRST)
        assert order(stage) == ["sweep[1]", "sweep[2]", "old"]
        running.refresh_from_db()
        assert (running.turn_at, running.priority_class) == (None, "normal")

    def test_a_turn_stays_with_work_that_is_preempted(self, stage: Stage) -> None:
        wait(stage, stage.ada, "old")
        [young] = wait(stage, stage.ada, "young", after_s=1)
        reorder(stage.ada, young, FIRST)
        end(young, State.ADMITTED, State.PREEMPTING, State.PENDING)
        assert order(stage) == ["young", "old"]


class TestPriority:
    def test_it_is_changed_and_the_next_cycle_goes_by_it(self, stage: Stage) -> None:
        low, high = (stage.submit(name, count=2, gpus=8) for name in ("low", "high"))
        reorder(stage.ada, high, Change(priority_class="urgent"))
        assert order(stage) == ["high", "low"]
        stage.cycle()
        assert [Workload.objects.get(id=each.id).state for each in (low, high)] == [
            "PENDING",
            "ADMITTED",
        ]

    def test_with_a_place_it_is_among_those_of_the_new_priority(self, stage: Stage) -> None:
        wait(stage, stage.ada, "high-0", priority_class="high")
        wait(stage, stage.ada, "normal-0")
        [mine] = wait(stage, stage.ada, "mine", after_s=1)
        reorder(stage.ada, mine, Change("high", To.FIRST))
        assert order(stage) == ["mine", "high-0", "normal-0"]

    def test_of_an_array_all_that_waits_gets_it(self, stage: Stage) -> None:
        wait(stage, stage.ada, "old")
        array = factories.array(stage.project, stage.ada, [stage.flavor], 2)
        reorder(stage.ada, array, Change("high"))
        assert order(stage) == ["sweep[0]", "sweep[1]", "old"]
        assert AuditEvent.objects.get(action="array.reorder").target_id == array.id
        assert WorkloadEvent.objects.filter(kind="reordered").count() == 2

    def test_what_is_so_already_changes_nothing(self, stage: Stage) -> None:
        first, _ = wait(stage, stage.ada, "first", "second")
        reorder(stage.ada, first, Change("normal", To.FIRST))
        first.refresh_from_db()
        assert first.version == 1
        assert not WorkloadEvent.objects.filter(kind="reordered").exists()
        assert not AuditEvent.objects.filter(action="workload.reorder").exists()


class TestTold:
    def test_timeline_and_audit_say_who_and_what_and_the_promise_of_versions_holds(
        self, stage: Stage, ben: User
    ) -> None:
        _, mine = wait(stage, ben, "other", "mine")
        reorder(ben, mine, Change("high"))
        reorder(stage.ada, mine, Change("normal", To.FIRST, version=2))
        told = mine.events.filter(kind="reordered").order_by("id")
        assert [each.message for each in told] == [
            "priority normal → high by ben",
            "priority high → normal, put first among those of the project by ada",
        ]
        entry = AuditEvent.objects.filter(action="workload.reorder").latest("id")
        assert entry.before == {"priority_class": "high"}
        assert entry.after == {"priority_class": "normal", "to": "first", "among": "the project"}
        [broken] = [sql for rule, sql in RULES.items() if rule.name == "version"]
        assert fleet.rows(broken) == []

    def test_who_only_has_anothers_turn_since_is_told_too(self, stage: Stage, ben: User) -> None:
        first, second, mine, behind = wait(stage, ben, "first", "second", "mine", "behind")
        reorder(stage.ada, mine, FIRST)
        for each in (first, second):
            [told] = each.events.filter(kind="turn")
            assert told.message == "has another's turn: mine was put first by ada"
        assert not WorkloadEvent.objects.filter(kind="turn", workload__in=[mine, behind]).exists()

    def test_who_moves_it_is_not_told_of_their_own(self, stage: Stage, ben: User) -> None:
        _, bens = wait(stage, ben, "first", "second")
        reorder(ben, bens, FIRST)
        wait(stage, stage.ada, "adas", after_s=10)
        reorder(stage.ada, bens, LAST)
        told = WorkloadEvent.objects.filter(kind="turn")
        assert [each.workload.name for each in told] == ["first"]

    def test_of_an_array_its_first_that_waits_is_told(self, stage: Stage, ben: User) -> None:
        array = factories.array(stage.project, ben, [stage.flavor], 4)
        end(array.elements.get(array_index=0), *RUN)
        [mine] = wait(stage, ben, "mine", after_s=3600)
        reorder(stage.ada, mine, FIRST)
        told = WorkloadEvent.objects.filter(kind="turn")
        assert [each.workload.name for each in told] == ["sweep[1]"]


class TestRefused:
    @pytest.mark.parametrize(
        ("states", "told"),
        [
            (RUN, "mine is RUNNING; only work that waits is reordered."),
            ([State.CANCELLED], "mine has ended already (CANCELLED)."),
        ],
    )
    def test_what_runs_or_has_ended(self, stage: Stage, states: list[State], told: str) -> None:
        [mine] = wait(stage, stage.ada, "mine")
        end(mine, *states)
        with pytest.raises(Conflict, match=told.replace("(", r"\(").replace(")", r"\)")):
            reorder(stage.ada, mine, FIRST)

    def test_an_array_of_which_nothing_waits(self, stage: Stage) -> None:
        array = factories.array(stage.project, stage.ada, [stage.flavor], 1)
        end(array.elements.get(), *RUN)
        with pytest.raises(Conflict, match="No element of sweep waits"):
            reorder(stage.ada, array, FIRST)

    def test_a_stale_version_is_told_what_is_there(self, stage: Stage, ben: User) -> None:
        [mine] = wait(stage, ben, "mine")
        reorder(ben, mine, Change("high", version=1))
        with pytest.raises(VersionMismatch, match="at version 2 by now, of priority high, not 1"):
            reorder(ben, mine, Change("low", version=1))
        mine.refresh_from_db()
        assert (mine.priority_class, mine.priority, mine.version) == ("high", 100, 2)

    def test_other_members_and_what_says_nothing(self, stage: Stage, ben: User) -> None:
        [adas] = wait(stage, stage.ada, "adas")
        with pytest.raises(NotAllowed, match="Only its submitter, an owner or an operator may"):
            reorder(ben, adas, FIRST)
        with pytest.raises(Invalid, match="Say what changes"):
            reorder(stage.ada, adas, Change())
        with pytest.raises(Invalid, match="known: low, normal, high, urgent"):
            reorder(stage.ada, adas, Change("utmost"))


@pytest.mark.django_db(transaction=True)
def test_many_at_once_leave_each_turn_to_one(stage: Stage) -> None:
    works = wait(stage, stage.ada, *"abcdef")
    turns = {(row.submitted_at, row.id) for row in works}

    def put(nth: int) -> None:
        try:
            reorder(stage.ada, works[nth % 6], FIRST if nth % 2 else LAST)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(24)))
    rows = Workload.objects.all()
    assert {(row.turn_at or row.submitted_at, row.turn_of or row.id) for row in rows} == turns
    assert sorted(order(stage)) == list("abcdef")
