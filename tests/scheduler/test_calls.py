"""The threads that ask a cluster, and in which order they do."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from clusters.port import Fault
from scheduler.loop.dispatching import calls, dispatch
from scheduler.loop.dispatching.calls import threads
from scheduler.models import Workload
from tests.scheduler.stage import Stage


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calls, "THREADS", 1)
    calls._threads.cache_clear()
    yield
    calls._threads().shutdown()
    calls._threads.cache_clear()


def test_they_are_kept_from_batch_to_batch() -> None:
    with threads() as first:
        asking = first.submit(threading.get_ident).result()
    with threads() as second:
        assert second.submit(threading.get_ident).result() == asking


def test_after_an_error_they_have_ended_and_ask_no_more() -> None:
    may_end = threading.Event()
    asked: list[Future[object]] = []

    def break_off() -> None:
        with threads() as pool:
            asked.extend((pool.submit(may_end.wait, 30), pool.submit(print)))
            asked[1].add_done_callback(lambda _: may_end.set())  # as soon as it is put off
            raise TimeoutError

    with pytest.raises(TimeoutError):
        break_off()
    assert (asked[0].done(), asked[1].cancelled()) == (True, True)
    with threads() as fresh:
        assert fresh.submit(int).result() == 0


def test_the_first_gates_of_a_batch_open_before_its_last_pods_are_born(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "GROUP", 1)
    for name in ("first", "second", "third"):
        stage.submit(name)
    stage.cycle()
    asked: list[str] = []
    for verb in ("create", "open"):
        stage.port.trouble[verb] = lambda pod, verb=verb: asked.append(verb)  # type: ignore[misc]
    assert stage.dispatch() == 3
    assert asked == ["create", "create", "open", "create", "open", "open"]
    assert Workload.objects.filter(state="BOUND").count() == 3


def test_a_group_that_is_refused_keeps_the_others_of_its_batch_from_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "GROUP", 1)
    made = [stage.submit(name) for name in ("first", "bad", "third")]
    stage.cycle()
    stage.port.fails("create", Fault.INVALID, pod=made[1].id.hex)
    stage.dispatch()
    states = dict(Workload.objects.values_list("name", "state"))
    assert states == {"first": "BOUND", "bad": "PREEMPTING", "third": "BOUND"}
