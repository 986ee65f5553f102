"""Who waits is read once a process, and then what has changed: never less than all of it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.core.lifecycle import State
from scheduler.core.waits import UnmetView
from scheduler.models import Dependency, DependencyKind, Workload
from scheduler.selectors import fleet, waiting
from scheduler.selectors.load import load
from scheduler.selectors.waiting import Waiting
from scheduler.services.transition import Step, transition
from tenants.models import Project
from tests.factories import AT
from tests.scheduler.stage import Stage
from tests.waiting import PATIENCE_S, eventually


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has read nothing yet."""
    monkeypatch.setattr(waiting, "_last", waiting.NOTHING)


def seen() -> dict[str, Waiting]:
    """Who waits, as this process knows it now; the same as if it had read nothing before."""
    found = dict(load(at=AT).waiting)
    kept, waiting._last = waiting._last, waiting.NOTHING
    assert list(load(at=AT).waiting.items()) == list(found.items())
    waiting._last = kept
    return {str(id): one for id, one in found.items()}


def priorities() -> dict[str, int]:
    names = {str(row.id): row.name for row in Workload.objects.all()}
    return {names[id]: one.view.priority for id, one in seen().items()}


def give(name: str, priority: int) -> None:
    Workload.objects.filter(name=name).update(priority=priority)


def move(name: str, before: State, after: State) -> None:
    row = Workload.objects.get(name=name)
    with transaction.atomic():
        moved = transition(
            [Step(row.id, row.project_id, before, after)], actor="a", actor_name="a", at=AT
        )
    assert moved


@contextmanager
def unfinished(act: Callable[[], object]) -> Iterator[None]:
    """`act` is done by another connection, which commits in the end."""
    begun, other = transaction.atomic(), ThreadPoolExecutor(1)

    def do() -> None:
        begun.__enter__()
        act()

    def commit() -> None:
        begun.__exit__(None, None, None)
        connection.close()

    with other:
        other.submit(do).result(PATIENCE_S)
        yield
        other.submit(commit).result(PATIENCE_S)


def nothing_older() -> bool:
    """Whether all that is open, of other databases too, is younger than who waits."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(age(xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid))"
            " FROM scheduler_workload"
        )
        return bool(cursor.fetchone()[0])


def counted() -> int:
    """Queries of a load."""
    with CaptureQueriesContext(connection) as queries:
        load(at=AT)
    return len(queries)


def at_rest() -> int:
    """Those of a load that has nothing to read again. Others of the same server may hold back what
    is known to be old, and make checkpoints: the least of some."""
    eventually("nothing older is open in the server", nothing_older)
    return min(counted() for _ in range(5))


def test_of_many_only_those_that_changed_are_read_again(committed: Stage) -> None:
    for name in ("changes", "stays"):
        committed.submit(name)
    unchanged = at_rest()
    Workload.objects.filter(name="changes").update(reason={"code": "no-fit"}, reason_at=AT)
    assert counted() == unchanged + 1
    found = load(at=AT).waiting
    assert sorted(each.reason_code for each in found.values()) == ["", "no-fit"]


def test_who_comes_changes_leaves_and_comes_back_is_seen(committed: Stage) -> None:
    for name in ("a", "b", "c"):
        committed.submit(name)
    assert priorities() == {"a": 0, "b": 0, "c": 0}
    give("b", 7)
    committed.submit("d")
    assert priorities() == {"a": 0, "b": 7, "c": 0, "d": 0}
    move("a", State.PENDING, State.ADMITTED)
    move("c", State.PENDING, State.CANCELLED)
    assert priorities() == {"b": 7, "d": 0}
    move("a", State.ADMITTED, State.PENDING)
    assert list(priorities()) == ["a", "b", "d"]


def test_who_leaves_while_another_comes_is_seen_to_leave(committed: Stage) -> None:
    """There are as many as before."""
    for name in ("a", "b"):
        committed.submit(name)
    assert priorities().keys() == {"a", "b"}
    committed.submit("c")
    move("a", State.PENDING, State.CANCELLED)
    assert priorities().keys() == {"b", "c"}


def test_who_is_admitted_waits_no_more_and_costs_no_further_look(committed: Stage) -> None:
    for name in ("starts", "waits"):
        committed.submit(name, gpus=8, count=2)
    unchanged = at_rest()
    committed.cycle()
    load(at=AT)  # what the other one waits for was written
    after = at_rest()
    assert priorities().keys() == {"waits"}
    assert after == unchanged


def test_what_is_committed_after_what_began_later_is_seen(committed: Stage) -> None:
    """A transaction's number says when it began to write, not when it ended."""
    for name in ("early", "late"):
        committed.submit(name)
    priorities()
    with unfinished(lambda: give("early", 5)):
        give("late", 6)
        assert priorities() == {"early": 0, "late": 6}
        assert priorities() == {"early": 0, "late": 6}
    assert priorities() == {"early": 5, "late": 6}


def test_what_another_thread_read_meanwhile_is_of_a_later_moment(
    committed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed.submit("a")
    load(at=AT)
    asked = fleet.rows
    others: list[str] = []

    def rows(*args: object) -> list[fleet.Row]:
        found = asked(*args)  # type: ignore[arg-type]  # as they came
        if not others:
            others.append("another")
            with ThreadPoolExecutor(1) as other:
                other.submit(later).result(PATIENCE_S)
        return found

    def later() -> None:
        give("a", 5)
        load(at=AT)
        connection.close()

    monkeypatch.setattr(fleet, "rows", rows)
    assert [one.view.priority for one in load(at=AT).waiting.values()] == [0]
    assert others
    assert priorities() == {"a": 5}


def test_what_it_waits_for_is_seen_though_no_workload_changed(committed: Stage) -> None:
    first, waits = committed.submit("first"), committed.submit("waits")
    assert seen()[str(waits.id)].view.waits_for is None
    asked = Dependency.objects.create(
        kind=DependencyKind.AFTER_SUCCESS, workload=waits, on_workload=first
    )
    assert seen()[str(waits.id)].view.waits_for == UnmetView(1, str(first.id), 0)
    Dependency.objects.filter(id=asked.id).update(settled_at=AT)
    assert seen()[str(waits.id)].view.waits_for is None


def test_what_a_reader_wrote_and_took_back_is_not_kept(committed: Stage) -> None:
    committed.submit("a")
    priorities()
    with transaction.atomic():
        give("a", 5)
        waiting.read(before=waiting.last(), holding=())
        transaction.set_rollback(True)
    assert priorities() == {"a": 0}


def test_a_cap_on_submitters_is_seen_though_no_workload_changed(committed: Stage) -> None:
    committed.submit()
    [before] = seen().values()
    Project.objects.update(user_max_running=1)
    [after] = seen().values()
    assert (before.view.user, after.view.user) == ("", str(committed.ada.id))


def test_nothing_is_kept_of_another_database(committed: Stage) -> None:
    """A restored copy has rows and transactions of the same numbers."""
    committed.submit("a")
    priorities()
    last = waiting._last
    checkpoint, _, capped = last.under
    [(id, one)] = last.waiting.items()
    other = {id: one._replace(version=77)}
    waiting._last = waiting.Read(last.since, [checkpoint, object(), capped], other, {}, {}, {}, {})
    assert [each.version for each in seen().values()] == [1]


def test_nothing_is_kept_over_a_checkpoint(committed: Stage) -> None:
    """After a crash the server gives the numbers of lost transactions again, so what was read last
    may be of later ones than all that is to come. It begins with a checkpoint."""
    committed.submit("a")
    priorities()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000)::text"
        )
        [since] = cursor.fetchone()
    waiting._last = replace(waiting.last(), since=since)
    committed.submit("b")
    assert len(load(at=AT).waiting) == 1, "what is not looked for would be found all the same"
    waiting._last = replace(waiting.last(), since=since)
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    assert priorities().keys() == {"a", "b"}
