"""The API as the trace's users have it: one connection, one token a class of service."""

import http.client
import json
import time
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from controlplane.trace.submission import Json


class Refused(Exception):
    """The API did not take a request; the message says what it answered."""


class Client:
    """Keeps its connection, as any HTTP library does."""

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._tokens = tokens
        self._projects: dict[str, str] = {}

    def submit(self, qos: str, workloads: Iterable[Json]) -> list[str]:
        """Submit them all or none; the ids that they got, in their order."""
        body = {"project": self._project(qos), "workloads": list(workloads)}
        answer = self._ask("POST", "workloads/batch", qos, body, wanted=201)
        return [item["id"] for item in answer["items"]]

    def get(self, qos: str, path: str) -> Json:
        return self._ask("GET", path, qos, None, wanted=200)

    def until(self, qos: str, id: str, states: frozenset[str], *, within_s: float) -> str:
        """Ask for a workload until it is in one of these states; which."""
        deadline = time.monotonic() + within_s
        while (state := str(self.get(qos, f"workloads/{id}")["state"])) not in states:
            if time.monotonic() > deadline:
                raise Refused(f"workload {id} is {state} for too long")
            time.sleep(0.005)
        return state

    def _project(self, qos: str) -> str:
        if qos not in self._projects:
            self._projects[qos] = str(self.get(qos, "projects")["items"][0]["id"])
        return self._projects[qos]

    def _ask(self, method: str, path: str, qos: str, body: Json | None, *, wanted: int) -> Json:
        headers = {
            "Authorization": f"Bearer {self._tokens[qos]}",
            "Content-Type": "application/json",
        }
        text = None if body is None else json.dumps(body)
        self._connection.request(method, f"/api/v1/{path}", text, headers)
        answer = self._connection.getresponse()
        data = answer.read().decode(errors="replace")
        if answer.status != wanted:
            raise Refused(f"{method} {path} answered {answer.status}: {data[:500]}")
        found: Json = json.loads(data)
        return found
