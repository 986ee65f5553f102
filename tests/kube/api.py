"""The Kubernetes API as plain HTTPS and JSON: what set-up and the contract tests speak."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

type Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said, whatever the status."""

    status: int
    body: Json


class Refused(Exception):
    """An answer outside 2xx where only success will do."""


class Api:
    """One server, one identity."""

    def __init__(self, server: str, ca_pem: str, token: str) -> None:
        self._server = server
        self._token = token
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=ca_pem)),
        )

    def call(
        self,
        method: str,
        path: str,
        body: Json | str | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 30.0,
    ) -> Answer:
        """Send one request; any HTTP status is an answer. A str body is sent as it is."""
        data = None if body is None else body if isinstance(body, str) else json.dumps(body)
        request = urllib.request.Request(
            self._server + path,
            data=None if data is None else data.encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/json",
                "Content-Type": content_type,
            },
        )
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                return Answer(response.status, _parsed(response.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _parsed(error.read()))

    def do(
        self,
        method: str,
        path: str,
        body: Json | str | None = None,
        *,
        content_type: str = "application/json",
    ) -> Json:
        """Send one request that must succeed and return its object."""
        answer = self.call(method, path, body, content_type=content_type)
        if not 200 <= answer.status < 300:
            message = answer.body.get("message", answer.body)
            raise Refused(f"{method} {path} answered {answer.status}: {message}")
        return answer.body

    def get(self, path: str) -> Json:
        return self.do("GET", path)

    def create(self, path: str, body: Json) -> Json:
        return self.do("POST", path, body)

    def delete(self, path: str) -> Json:
        return self.do("DELETE", path)


def _parsed(raw: bytes) -> Json:
    try:
        parsed = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"message": parsed}
