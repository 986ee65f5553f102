"""Berth's API from the outside: one request, one answer, one sentence when it is no."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import click
import urllib3

type Json = Any  # JSON values

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_TIMEOUT = urllib3.Timeout(connect=5, read=60)


class SaidNo(click.ClickException):
    """The server answered with a problem; `faults` are (JSON pointer, sentence) of the input."""

    def __init__(self, status: int, answer: Json) -> None:
        if not isinstance(answer, dict) or "detail" not in answer:
            answer = {"title": "No", "detail": f"The server answered {status}."}
        self.title = str(answer.get("title", status))
        self.faults = [
            (str(fault.get("pointer") or ""), str(fault.get("message")))
            for fault in answer.get("errors", [])
        ]
        lines = [f"  {pointer or '-'}: {message}" for pointer, message in self.faults]
        super().__init__("\n".join([f"{self.title}: {answer['detail']}", *lines]))


class Client:
    """`server` is the portal's address, `token` an API token.

    Raises click.UsageError for an address that is none, or where the token would travel in clear.
    """

    def __init__(self, *, server: str, token: str) -> None:
        url = urlsplit(server)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise click.UsageError(f"--server has to be an http(s) address, not {server!r}.")
        plain = url.scheme == "http" and url.hostname not in _LOOPBACK
        if plain and os.environ.get("BERTH_PLAIN_HTTP") != "1":
            raise click.UsageError(
                "The token would travel in clear: use https, or permit it by BERTH_PLAIN_HTTP=1."
            )
        self._root = f"{server.rstrip('/')}/api/v1"
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT)

    def get(self, *path: str, **query: str | None) -> Json:
        asked = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", path, query=asked)

    def items(self, *path: str, **query: str | None) -> Iterator[Json]:
        """Every row of a list, page after page."""
        cursor: str | None = None
        while True:
            page = self.get(*path, cursor=cursor, limit="200", **query)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def post(self, *path: str, body: Json = None) -> Json:
        """Safe to repeat: it carries an Idempotency-Key, and is sent again when no answer came."""
        return self._ask("POST", path, body=body, key=uuid.uuid4().hex)

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        key: str | None = None,
    ) -> Json:
        url = "/".join([self._root, *(quote(part, safe="") for part in path)])
        if query:
            url += f"?{urlencode(query)}"
        headers = dict(self._headers)
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            # A redirect would carry the token elsewhere.
            answer = self._pool.request(
                method, url, body=content, headers=headers, redirect=False,
                retries=urllib3.Retry(2, redirect=0, status=0, backoff_factor=0.2,
                                      allowed_methods=None),
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            raise click.ClickException(
                f"{self._root} does not answer: {_cause(error)}."
            ) from error
        data = _parsed(answer.data)
        if answer.status >= 300:
            raise SaidNo(answer.status, data)
        if data is None:
            raise click.ClickException(f"{self._root} is no Berth: it did not answer in JSON.")
        return data


def _cause(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    return type(reason).__name__


def _parsed(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError:
        return None
