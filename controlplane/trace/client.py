"""The API as the trace's users have it: one connection, one token a class of service."""

import http.client
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from urllib.parse import urlencode, urlsplit

from controlplane.trace.submission import Json

AWAY_S = 60.0
"""How long the server may be away: a killed one is started again within seconds."""
_AGAIN_S = 0.1


class Refused(Exception):
    """The API did not take a request, or has gone; the message says what it answered."""


class Client:
    """Keeps its connection, as any HTTP library does, and outlives the server's death."""

    def __init__(self, url: str, tokens: Mapping[str, str], *, away_s: float = AWAY_S) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._tokens = tokens
        self._projects: dict[str, str] = {}
        self._away_s = away_s
        self._away_since: float | None = None

    def submit(self, qos: str, workloads: Iterable[Json]) -> None:
        """Submit them all or none, once, though the server may die meanwhile.

        Their names have to be their own: the first one tells whether they are there.
        """
        items = list(workloads)
        body = {"project": self._project(qos), "workloads": items}
        key = uuid.uuid4().hex
        while self._tried("POST", "workloads/batch", qos, body, key=key) is None:
            # They may be there, and only the answer lost. The key tells the server so for a day,
            # which on an accelerated clock is over before it has been started again.
            query = urlencode({"project": body["project"], "name": items[0]["name"]})
            if self.get(qos, f"workloads?{query}")["items"]:
                return

    def get(self, qos: str, path: str) -> Json:
        while (found := self._tried("GET", path, qos)) is None:
            pass
        return found

    def _project(self, qos: str) -> str:
        if qos not in self._projects:
            self._projects[qos] = str(self.get(qos, "projects")["items"][0]["id"])
        return self._projects[qos]

    def _tried(
        self, method: str, path: str, qos: str, body: Json | None = None, *, key: str = ""
    ) -> Json | None:
        """The answer; None, after a moment, when none came or an earlier request with the key is
        still being worked on. Raises Refused."""
        headers = {
            "Authorization": f"Bearer {self._tokens[qos]}",
            "Content-Type": "application/json",
            **({"Idempotency-Key": key} if key else {}),
        }
        text = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, f"/api/v1/{path}", text, headers)
            answer = self._connection.getresponse()
            data = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._away_since = self._away_since or time.monotonic()
            if time.monotonic() - self._away_since > self._away_s:
                raise Refused(f"{method} {path}: the server has gone: {error!r}") from error
            time.sleep(_AGAIN_S)
            return None
        self._away_since = None
        if answer.status == http.HTTPStatus.CONFLICT and key and '"in-flight"' in data:
            time.sleep(_AGAIN_S)
            return None
        if answer.status >= 300:
            raise Refused(f"{method} {path} answered {answer.status}: {data[:500]}")
        found: Json = json.loads(data)
        return found
