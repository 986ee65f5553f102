"""Watches end, expire or fail as they should, whatever comes down the line."""

import time
from contextlib import suppress

import orjson
import pytest

from clusters.adapters.kubernetes import watch as watch_module
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.port import Change, ClusterError, Fault, PodReport, WatchEvent
from tests.clusters.scripted import Act, answer, scripted, stream
from tests.networks import LOOPBACK

pytestmark = pytest.mark.part_simulator


def line(kind: str, **body: object) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


def pod(kind: str, version: str, **metadata: object) -> bytes:
    named = {"namespace": "team", "name": "a", "uid": "u", "resourceVersion": version}
    return line(kind, metadata={**named, **metadata}, spec={"containers": []}, status={})


def seen(act: Act, *, read_timeout_s: float = 5.0) -> list[WatchEvent[PodReport]]:
    """The events up to the stream's end; what ends it otherwise is raised."""
    with scripted(lambda _: act) as server:
        return watch(server.url, read_timeout_s)


def watch(url: str, read_timeout_s: float) -> list[WatchEvent[PodReport]]:
    port = KubernetesCluster(
        Client(server=url, identity="a-token-for-tests", allowed=LOOPBACK),
        names=Names(prefix="berth.dev", installation="lab"),
        watch_read_timeout_s=read_timeout_s,
    )
    with port.watch_pods(resource_version="5") as events:
        return list(events)


def fault_of(act: Act) -> Fault:
    with pytest.raises(ClusterError) as raised:
        seen(act)
    return raised.value.fault


def test_events_come_with_their_versions() -> None:
    events = seen(stream(pod("ADDED", "6"), pod("MODIFIED", "7"), pod("DELETED", "8")))
    assert [(event.change, event.resource_version) for event in events] == [
        (Change.UPSERT, "6"),
        (Change.UPSERT, "7"),
        (Change.DELETE, "8"),
    ]
    assert all(event.report is not None for event in events)


def test_the_request_names_the_version_and_asks_for_bookmarks() -> None:
    with scripted(lambda _: stream()) as server:
        watch(server.url, 5)
        request = server.requests[0].split("\r\n")[0]
    for part in ("watch=1", "resourceVersion=5", "allowWatchBookmarks=true", "timeoutSeconds=60"):
        assert part in request


def test_a_bookmark_moves_the_version_and_nothing_else() -> None:
    # As Kubernetes 1.36 sends it.
    metadata = {"resourceVersion": "9", "creationTimestamp": None}
    bookmark = line("BOOKMARK", metadata=metadata, spec={"containers": None}, status={})
    assert seen(stream(bookmark)) == [WatchEvent(Change.BOOKMARK, None, "9")]


def test_an_object_that_makes_no_sense_only_moves_the_version() -> None:
    events = seen(stream(pod("ADDED", "6", uid=None), pod("ADDED", "7")))
    assert [(event.change, event.resource_version) for event in events] == [
        (Change.BOOKMARK, "6"),
        (Change.UPSERT, "7"),
    ]


def test_lines_may_come_in_any_pieces() -> None:
    whole = pod("ADDED", "6") + pod("ADDED", "7")
    pieces = [whole[i : i + 7] for i in range(0, len(whole), 7)]
    assert [event.resource_version for event in seen(stream(*pieces))] == ["6", "7"]


def test_a_line_that_was_cut_is_dropped_and_ends_the_stream() -> None:
    events = seen(stream(pod("ADDED", "6"), pod("ADDED", "7")[:40]))
    assert [event.resource_version for event in events] == ["6"]


def test_a_half_open_connection_is_given_up_after_the_read_time_out() -> None:
    with scripted(lambda server: stream(pod("ADDED", "6"), then=server.silence)) as server:
        started = time.monotonic()
        events = watch(server.url, 0.3)
        assert [event.resource_version for event in events] == ["6"]
        assert time.monotonic() - started < 3


def test_an_answer_of_410_has_expired() -> None:
    assert fault_of(answer("410 Gone")) is Fault.EXPIRED


def test_an_error_event_of_410_has_expired() -> None:
    assert fault_of(stream(pod("ADDED", "6"), line("ERROR", code=410))) is Fault.EXPIRED


@pytest.mark.parametrize("code", [500, None, "410", True])
def test_another_error_event_is_the_servers_fault(code: object) -> None:
    assert fault_of(stream(line("ERROR", code=code))) is Fault.SERVER


def test_an_error_event_never_repeats_the_token() -> None:
    with scripted(lambda _: stream(line("ERROR", code=500, message="no canary here"))) as server:
        client = Client(server=server.url, identity="canary", allowed=LOOPBACK)
        port = KubernetesCluster(client, names=Names(prefix="p", installation="i"))
        with (
            pytest.raises(ClusterError, match=r"no \[token\] here"),
            port.watch_nodes(resource_version="5") as events,
        ):
            next(events)


@pytest.mark.parametrize(
    "odd",
    [
        b"not json\n",
        b"[]\n",
        b'{"type": "ADDED"}\n',
        b'{"type": 7, "object": {}}\n',
        b'{"type": "ADDED", "object": {}}\n',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": 7}}}\n',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "%s"}}}\n' % (b"9" * 99),
    ],
)
def test_a_line_that_is_no_event_is_malformed(odd: bytes) -> None:
    assert fault_of(stream(odd)) is Fault.MALFORMED


def test_an_endless_line_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LONGEST_LINE", 10_000)
    assert fault_of(stream(*[b"x" * 8_000] * 3)) is Fault.MALFORMED


def test_a_watch_that_nobody_reads_on_is_closed() -> None:
    with scripted(lambda server: stream(pod("ADDED", "6"), then=server.silence)) as server:
        port = KubernetesCluster(
            Client(server=server.url, identity="a-token-for-tests", allowed=LOOPBACK),
            names=Names(prefix="p", installation="i"),
        )
        with suppress(KeyError), port.watch_pods(resource_version="5") as events:
            next(events)
            raise KeyError("whatever the reader meets")
