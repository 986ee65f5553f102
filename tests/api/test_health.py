"""What machines ask: probes and numbers; and the wall against large bodies before everything."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import Cluster, Exposure
from controlplane import asgi
from controlplane.kernel import clock
from scheduler.core.lifecycle import State
from scheduler.models import InvariantCheck, SchedulerLease
from tenants.models import User
from tests import factories
from tests.conftest import Cast
from tests.strays import stray

type Api = Callable[[User | None], APIClient]
type Message = dict[str, Any]  # Any: ASGI messages


def test_the_process_answers_without_a_database(api: Api) -> None:
    assert api(None).get("/healthz").content == b"ok\n"


def test_it_is_ready_with_its_database(api: Api, db: None) -> None:
    answer = api(None).get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (200, "ok")


def test_nothing_starts_before_all_is_listed_after_a_restore(api: Api, db: None) -> None:
    InvariantCheck.objects.create(at=clock.now(), took_ms=1)
    assert api(None).get("/readyz").json()["admission"] == "ok"
    cluster = factories.cluster()
    Cluster.objects.filter(id=cluster.id).update(restored_at=factories.AT, state="new")
    assert api(None).get("/readyz").json()["admission"] == "stopped"


def test_it_is_not_ready_without_its_database(
    api: Api, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def cursor(self) -> None:
            raise DatabaseError("down")

    monkeypatch.setattr("controlplane.health.connection", Broken())
    answer = api(None).get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "no answer")


def test_what_can_not_be_stored_now_is_to_be_sent_again(api: Api, cast: Cast) -> None:
    factories.node(factories.cluster())
    factories.quota(cast.detection, factories.flavor(), 32_000)
    body = factories.submission(cast.detection)
    ben = api(cast.ben)  # who is signed in here
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET TRANSACTION READ ONLY")  # until the savepoint is rolled back
        answer = ben.post("/api/v1/workloads", body, format="json")
        transaction.set_rollback(True)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.json()["detail"] == "The database takes no writes; try again."


def test_redis_gone_is_told_but_not_fatal(
    api: Api, db: None, settings: Any
) -> None:  # Any: pytest-django's
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = api(None).get("/readyz")
    assert (answer.status_code, answer.json()["redis"]) == (200, "no answer")


def test_metrics_count_states_and_leases_by_id_only(api: Api, cast: Cast) -> None:
    flavor = factories.flavor()
    for state in (State.PENDING, State.PENDING, State.RUNNING, State.SUCCEEDED):
        factories.workload(cast.detection, cast.ben, [flavor], "secret", state=state)
    SchedulerLease.objects.create(
        shard="main", epoch=7, holder="w1", expires_at=Now() + timedelta(seconds=10)
    )
    factories.quota(cast.detection, flavor, borrowing_limit_milli=0, enforce_at=factories.AT)
    later = datetime.now(UTC) + timedelta(days=1)
    factories.quota(cast.dialogue, flavor, borrowing_limit_milli=0, enforce_at=later)
    for name, cordoned in (("stays", True), ("opened-by-hand", False)):
        node = factories.node(factories.cluster(name), name, gpus=0, schedulable=not cordoned)
        factories.recut(node, state="failed", outcome="failed", stuck=True, ended_at=factories.AT)
    stray(Cluster.objects.get(name="stays"))
    Cluster.objects.filter(name="opened-by-hand").update(restored_at=factories.AT)
    token = factories.token(cast.oz)
    text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['berth_workloads{state="PENDING"}'] == "2.0"
    assert lines['berth_workloads{state="RUNNING"}'] == "1.0"
    assert lines['berth_workloads{state="BOUND"}'] == "0.0"
    assert lines['berth_scheduler_lease_epoch{shard="main"}'] == "7.0"
    assert float(lines['berth_scheduler_lease_left_seconds{shard="main"}']) == pytest.approx(10, 1)
    assert lines["berth_operations_due"] == "0.0"
    assert lines["berth_nodes_stuck"] == "1.0"
    assert lines['berth_cluster_state{cluster="stays",state="active"}'] == "1.0"
    assert lines['berth_cluster_state{cluster="stays",state="lost"}'] == "0.0"
    assert lines['berth_attempts_unseen{cluster="stays"}'] == "0.0"
    assert lines['berth_strays{cluster="stays"}'] == "1.0"
    assert lines['berth_strays{cluster="opened-by-hand"}'] == "0.0"
    assert lines['berth_cluster_unread{cluster="stays"}'] == "0.0"
    assert lines['berth_cluster_unread{cluster="opened-by-hand"}'] == "1.0"
    assert lines['berth_quotas_enforced{when="now"}'] == "1.0"
    assert lines['berth_quotas_enforced{when="later"}'] == "1.0"
    for word in ("secret", "Vision", "Detection", "SUCCEEDED", "w1"):
        assert word not in text


def test_the_metric_of_exposure_has_no_sample_where_it_is_not_known(api: Api, cast: Cast) -> None:
    now = clock.now()
    for name, verdict, saw, seen_at in (
        ("shut", "safe", [], now),
        ("open", "unsafe", ["/dev/nvidia0"], now - timedelta(days=9)),
        ("dark", "unknown", [], now),
        ("old", "safe", [], now - timedelta(days=2)),
    ):
        Exposure.objects.create(
            cluster=factories.cluster(name), verdict=verdict, saw=saw, seen_at=seen_at
        )
    token = factories.token(cast.oz)
    text = APIClient(headers=factories.bearer(token)).get("/metrics").content.decode()
    told = {line for line in text.splitlines() if line.startswith("berth_cluster_unsafe")}
    assert told == {
        'berth_cluster_unsafe{cluster="shut"} 0.0',
        'berth_cluster_unsafe{cluster="open"} 1.0',
    }


def run(done: Awaitable[None]) -> None:
    async def wait() -> None:
        await done

    # In a thread of its own: Playwright leaves an event loop running in the main one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, wait()).result()


@dataclass(frozen=True)
class Answer:
    """`got` is what the application behind the wall was given, one element a request."""

    status: int
    headers: dict[str, str]
    body: bytes
    got: list[bytes]


def send(*pieces: bytes, path: str = "/api/v1/workloads") -> Answer:
    """A POST whose body comes in pieces."""
    got: list[bytes] = []
    sent: list[Message] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # Any: ASGI
        message = await receive()
        got.append(message["body"])
        assert not message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})

    left = [
        {"type": "http.request", "body": piece, "more_body": index < len(pieces) - 1}
        for index, piece in enumerate(pieces)
    ]

    async def receive() -> Message:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def answer(message: Any) -> None:  # Any: ASGI
        sent.append(dict(message))

    wall = asgi.body_limit(app, limit=100)
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
    run(wall(scope, receive, answer))
    start, *bodies = sent
    headers = {name.decode(): text.decode() for name, text in start["headers"]}
    return Answer(start["status"], headers, b"".join(each["body"] for each in bodies), got)


def test_a_body_within_the_limit_arrives_whole() -> None:
    answer = send(b"x" * 60, b"y" * 40)
    assert (answer.status, answer.body, answer.got) == (200, b"fine", [b"x" * 60 + b"y" * 40])
    assert send(b"").got == [b""]


def test_a_larger_body_is_refused_before_the_application_sees_it() -> None:
    answer = send(b"x" * 60, b"y" * 41)
    assert (answer.status, answer.got) == (413, [])
    assert json.loads(answer.body)["code"] == "too-large"


def test_a_page_says_so_as_a_page() -> None:
    answer = send(b"x" * 101, path="/workloads/new")
    assert (answer.status, answer.got) == (413, [])
    assert b"<h1>Too large</h1>" in answer.body


@pytest.mark.parametrize("path", ["/no-such-page", "/api/v1/no-such-path"])
def test_a_refusal_has_the_headers_of_every_other_answer(db: None, path: str) -> None:
    usual = {name.lower(): text for name, text in Client().get(path).headers.items()}
    assert {"content-security-policy", "x-frame-options", "referrer-policy"} <= usual.keys()
    sent = send(b"x" * 101, path=path).headers
    assert int(sent.pop("content-length")) > 100
    assert sent.pop("connection") == "close"
    for each in (usual, sent):
        each.pop("vary", None)  # as the caller's session and cookies, which were not looked at
        each.pop("content-length", None)
    assert sent == usual


def test_an_endless_body_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "DRAINED_BYTES", 1000)
    answer = send(*[b"x" * 100] * 10_000)
    assert (answer.status, answer.got) == (413, [])


def test_a_client_that_leaves_early_gets_nothing() -> None:
    async def never(*_: object) -> None:
        raise AssertionError("the application was called")

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    wall = asgi.body_limit(never, limit=100)
    run(wall({"type": "http", "path": "/"}, leave, never))


def test_a_request_goes_to_its_thread_once_for_all_that_looks_at_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    went: list[object] = []
    go = SyncToAsync.__call__

    async def counted(self: Any, *args: Any, **kwargs: Any) -> Any:  # Any: of whatever goes there
        went.append(self.func)
        return await go(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    sent: list[Message] = []
    asked = [{"type": "http.request", "body": b""}]

    async def receive() -> Message:
        return asked.pop() if asked else await asyncio.Event().wait()  # type: ignore[return-value]  # for ever

    async def answer(message: Any) -> None:  # Any: ASGI
        sent.append(dict(message))

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/api/v1/none", "query_string": b""}
    handler = asgi.InOneThread()
    run(handler({**scope, "headers": headers}, receive, answer))
    assert sent[0]["status"] == 404
    assert went.count(handler.get_response) == 1
    assert len(went) <= 3  # beside it what begins a request, and what ends it
