"""Watches: the history after a revision and then each change, as lines of JSON, with bookmarks."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from clusters.simulator.answers import Json, expired
from clusters.simulator.faults import WATCH_KINDS, Faults, Kind
from clusters.simulator.lists import Selector
from clusters.simulator.store import RESOURCES, Change, Store

type Send = Callable[[Json], Awaitable[None]]
type Receive = Callable[[], Awaitable[Json]]

GATHER_S = 0.005  # changes that close together are sent together
DEFAULT_TIMEOUT_S = 1800.0


class Watches:
    """All open watches of the server."""

    def __init__(self, store: Store, faults: Faults, *, bookmark_s: float = 10.0) -> None:
        self._store = store
        self._faults = faults
        self._bookmark_s = bookmark_s
        self._open: set[Watch] = set()
        self.closing = False

    @property
    def count(self) -> int:
        return len(self._open)

    async def serve(
        self, resource: str, namespace: str, query: dict[str, str], receive: Receive, send: Send
    ) -> None:
        watch = Watch(self._store, resource, namespace, Selector(query.get("labelSelector", "")))
        self._open.add(watch)
        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(lambda _: watch.end())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._stream(watch, query, send)
        finally:
            gone.cancel()
            watch.end()
            self._open.discard(watch)

    def close(self) -> None:
        """End every watch, so that the server can stop."""
        self.closing = True
        for watch in list(self._open):
            watch.end()

    async def _stream(self, watch: "Watch", query: dict[str, str], send: Send) -> None:
        if not watch.begin(query.get("resourceVersion", "")):
            error = expired(watch.asked, watch.oldest)
            await send(_chunk(_line("ERROR", orjson.dumps(error)), more=False))
            return
        loop = asyncio.get_running_loop()
        timeout_s = float(query.get("timeoutSeconds") or DEFAULT_TIMEOUT_S)
        deadline = loop.time() + timeout_s
        bookmarks = query.get("allowWatchBookmarks") in ("1", "true")
        bookmark_at = loop.time() + self._bookmark_s if bookmarks else deadline
        while not watch.ended and not self.closing:
            left = min(deadline, bookmark_at) - loop.time()
            if left > 0:
                await watch.changed(left)
            changes = watch.changes()
            if changes is None:
                await send(_chunk(_line("ERROR", orjson.dumps(watch.too_slow())), more=False))
                return
            lines = [_line(change.kind, change.raw) for change in changes]
            if bookmarks and loop.time() >= min(deadline, bookmark_at):
                lines.append(_line("BOOKMARK", watch.bookmark()))
                bookmark_at = loop.time() + self._bookmark_s
            if lines and await self._suffers(watch, lines, send):
                return
            if lines:
                await send(_chunk(b"".join(lines)))
            if loop.time() >= deadline:
                break
        if not watch.ended:
            await send(_chunk(b"", more=False))

    async def _suffers(self, watch: "Watch", lines: list[bytes], send: Send) -> bool:
        """Whether a fault ends this watch here."""
        fault = self._faults.strike(WATCH_KINDS, verb="watch", resource=watch.resource)
        if fault is None:
            return False
        if fault.kind is Kind.CUT_WATCH:
            cut = lines[0][: len(lines[0]) // 2]
            await send(_chunk(cut))
            await asyncio.sleep(0.02)  # so that it is sent before the connection breaks
        else:
            await watch.silence()
        return True


_HEADERS = [(b"content-type", b"application/json")]


class Watch:
    """One watcher's place in the history."""

    def __init__(self, store: Store, resource: str, namespace: str, selector: Selector) -> None:
        self.resource = resource
        self.asked = 0
        self.ended = False
        self._store = store
        self._history = store.histories[resource]
        self._start = f"{namespace}/" if namespace else ""
        self._selector = selector
        self._position = 0
        self._backlog: list[Change] = []
        self._wake = asyncio.Event()
        self._unlisten = store.listen(resource, self._wake.set)

    @property
    def oldest(self) -> int:
        return self._history.oldest

    def begin(self, version: str) -> bool:
        """Take the place after that version; False when the history does not reach there.

        No version, or "0", begins with everything that is there.
        """
        self.asked = int(version) if version.isascii() and version.isdigit() else 0
        if self.asked == 0:
            table = self._store.tables[self.resource]
            self._backlog = [
                Change(0, "ADDED", key, entry.body["metadata"].get("labels") or {}, entry.raw)
                for key, entry in sorted(table.items())
            ]
            self._position = self._history.end
            return True
        if self.asked < self._history.oldest or self.asked > self._store.revision:
            return False
        self._position = self._history.position_after(self.asked)
        return True

    def changes(self) -> list[Change] | None:
        """What is new for this watcher; None when it has been too slow."""
        self._wake.clear()
        fresh = self._history.since(self._position)
        if fresh is None:
            return None
        self._position += len(fresh)
        if self._backlog:
            fresh, self._backlog = self._backlog + fresh, []
        if not self._start and not self._selector:
            return fresh
        return [
            change
            for change in fresh
            if change.key.startswith(self._start) and self._selector.matches(change.labels)
        ]

    async def changed(self, timeout_s: float) -> None:
        """Wait for a change, and a little longer for its neighbours, or until the time is up."""
        if self._position != self._history.end or self._backlog:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(min(GATHER_S, timeout_s))

    def bookmark(self) -> bytes:
        return orjson.dumps(
            {
                "kind": RESOURCES[self.resource],
                "apiVersion": "v1",
                "metadata": {"resourceVersion": str(self._store.revision)},
            }
        )

    def too_slow(self) -> Json:
        return expired(self.asked, self.oldest)

    async def silence(self) -> None:
        """Say nothing until the client hangs up."""
        while not self.ended:
            self._wake.clear()
            await self._wake.wait()

    def end(self) -> None:
        self.ended = True
        self._unlisten()
        self._wake.set()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


def _chunk(body: bytes, *, more: bool = True) -> Json:
    return {"type": "http.response.body", "body": body, "more_body": more}
