"""The HTTP side: who may ask, which fault strikes, what is answered. An ASGI application."""

import asyncio
import hmac
import logging
import os
import resource as usage
import time
from collections import Counter
from urllib.parse import parse_qsl, unquote

import orjson

from clusters.simulator import gauges, reviews
from clusters.simulator.answers import Json, Refusal, bad_request, forbidden
from clusters.simulator.api import VERSION, Api, Target, target, verb
from clusters.simulator.cluster import Cluster, object_of
from clusters.simulator.faults import REQUEST_KINDS, Fault, Faults, Kind
from clusters.simulator.lists import Snapshot
from clusters.simulator.watches import Receive, Send, Watches

logger = logging.getLogger(__name__)

LARGEST_BODY = 3 * 1024 * 1024
_FOREVER_S = 3600.0


class App:
    """One simulated API server. `token` is the only credential it accepts."""

    def __init__(self, cluster: Cluster, *, token: str, bookmark_s: float = 10.0) -> None:
        self.cluster = cluster
        self.faults = Faults()
        self.api = Api(cluster)
        self.watches = Watches(cluster.store, self.faults, bookmark_s=bookmark_s)
        self.requests: Counter[str] = Counter()
        self._bearer = f"Bearer {token}".encode()
        self._stale: dict[str, Snapshot] = {}

    async def __call__(self, scope: Json, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except Refusal as refusal:
            await _send(send, refusal.code, refusal.body, retry_after_s=refusal.retry_after_s)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # A body of a shape that the simulator does not check.
            logger.exception("a request could not be answered")
            plain = Refusal(400, "BadRequest", f"{type(error).__name__}: {error}")
            await _send(send, 400, plain.body)

    async def _answer(self, scope: Json, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._bearer):
            raise Refusal(401, "Unauthorized", "Unauthorized")
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        if path == "/version":
            await _send(send, 200, orjson.dumps(VERSION))
        elif path == "/metrics":
            await _send(send, 200, gauges.text(self.cluster.store), content_type=b"text/plain")
        elif path == "/api/v1/query":
            await _send(send, 200, gauges.answer(self.cluster.store, query.get("query", "")))
        elif path.startswith("/_simulator/"):
            await _send(send, 200, self._control(method, path, await _body(receive)))
        elif (review := reviews.find(method, path)) is not None:
            await _send(send, 201, review(object_of(await _body(receive)), self.faults))
        elif (what := target(unquote(path))) is not None:
            await self._serve(verb(method, what, query), what, query, headers, receive, send)
        else:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")

    async def _serve(
        self,
        act: str,
        what: Target,
        query: dict[str, str],
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        self.requests[f"{act} {what.kind}"] += 1
        data = await _body(receive) if act not in ("get", "list", "watch") else b""
        name = what.name or (_name(data) if self.faults.active and data else "")
        fault = self.faults.strike(REQUEST_KINDS, verb=act, resource=what.resource, name=name)
        if fault is not None:
            _refuse(fault, act, what)
            if fault.kind is Kind.TIMEOUT_BEFORE:
                return await _hold(fault, receive)
        if act == "watch":
            return await self.watches.serve(what.resource, what.namespace, query, receive, send)
        content_type = headers.get(b"content-type", b"").split(b";")[0].decode()
        if fault is not None and fault.kind is Kind.STALE_LIST and what.resource in self._stale:
            body = self.api.lists.whole(what.resource, self._stale[what.resource])
        else:
            body = self.api.answer(act, what, query, data, content_type)
        if fault is not None and fault.kind is Kind.TIMEOUT_AFTER:
            return await _hold(fault, receive)
        await _send(send, 201 if act == "create" else 200, body)

    def _control(self, method: str, path: str, data: bytes) -> bytes:
        match method, path.rsplit("/", 1)[1]:
            case "GET", "stats":
                return orjson.dumps(self._stats())
            case "GET", "faults":
                return orjson.dumps({"faults": [fault.shown() for fault in self.faults.active]})
            case "DELETE", "faults":
                self.faults.clear()
                return b"{}"
            case "POST", "faults":
                return orjson.dumps(self._inject(object_of(data)))
        raise Refusal(404, "NotFound", "the simulator has no such control")

    def _inject(self, body: Json) -> Json:
        """A fault to come, or an act on the machines now (see `_act`)."""
        if self._act(body):
            return {}
        fault = Fault.parse(body)
        if fault.kind is Kind.STALE_LIST:
            for resource in self.cluster.store.tables:
                if fault.resource in ("*", resource):
                    self._stale[resource] = self.api.lists.snapshot(resource)
        self.faults.add(fault)
        return fault.shown()

    def _act(self, body: Json) -> bool:
        """Do something to a machine or a pod; False when `kind` is no such act."""
        node = body.get("node", "")
        match body.get("kind"):
            case "lose-node":
                self.cluster.lose_node(node)
            case "return-node":
                self.cluster.return_node(node)
            case "delete-node":
                self.cluster.delete_node(node)
            case "cordon-node":
                self.cluster.cordon_node(node, cordoned=body.get("cordoned", True))
            case "trouble-cut":
                self.cluster.trouble_cut(node, body.get("how", ""))
            case "expose-node":
                saw = body.get("saw")
                if not isinstance(saw, list | None):
                    bad_request("saw has to be a list, or null for a pod that says nothing")
                self.cluster.kubelets.exposed[node] = saw
            case "pod-says":
                said = {key: body.get(key) for key in ("log", "events")}
                self.cluster.inspected.say(body.get("pod", ""), **said)
            case "set-allocatable":
                resources = body.get("resources")
                if not isinstance(resources, dict):
                    bad_request("resources has to be an object")
                self.cluster.set_allocatable(node, resources)
            case "evict-pod":
                self.cluster.evict_pod(body.get("pod", ""))
            case "disrupt-pod":
                self.cluster.disrupt_pod(body.get("pod", ""), by=body.get("by", ""))
            case "skew-clocks":
                self.cluster.skew_clocks(float(body.get("seconds", 0)))
            case "forget-history":
                self.cluster.forget_history()
            case _:
                return False
        return True

    def _stats(self) -> Json:
        used = usage.getrusage(usage.RUSAGE_SELF)
        return {
            "requests": dict(self.requests),
            "objects": {name: len(table) for name, table in self.cluster.store.tables.items()},
            "phases": Counter(pod["status"]["phase"] for pod in self.cluster.store.bodies("pods")),
            "revision": self.cluster.store.revision,
            "watches": self.watches.count,
            "cpu_s": time.process_time(),
            "peak_rss_mib": used.ru_maxrss // 1024,
            "pid": os.getpid(),
        }


def _refuse(fault: Fault, act: str, what: Target) -> None:
    """Raise what the fault answers; nothing for the kinds that let the request pass."""
    match fault.kind:
        case Kind.THROTTLE:
            raise Refusal(
                429,
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
                retry_after_s=int(fault.seconds) or None,
            )
        case Kind.ERROR:
            raise Refusal(fault.status, "InternalError", fault.message)
        case Kind.FORBID:
            raise forbidden(act, what.resource, what.namespace)
        case Kind.GONE:
            raise Refusal(410, "Expired", "The resourceVersion for the provided watch is too old.")


def _name(data: bytes) -> str:
    metadata = object_of(data).get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


async def _hold(fault: Fault, receive: Receive) -> None:
    """Answer nothing until the client gives up."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    try:
        await asyncio.wait_for(gone(), fault.seconds or _FOREVER_S)
    except TimeoutError:
        return


async def _body(receive: Receive) -> bytes:
    data: bytes = b""
    while True:
        message = await receive()
        data += message.get("body", b"")
        if len(data) > LARGEST_BODY:
            raise Refusal(413, "RequestEntityTooLarge", "limit is 3145728")
        if not message.get("more_body"):
            return data


async def _send(
    send: Send,
    status: int,
    body: bytes,
    *,
    retry_after_s: int | None = None,
    content_type: bytes = b"application/json",
) -> None:
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
    ]
    if retry_after_s is not None:
        headers.append((b"retry-after", str(retry_after_s).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
