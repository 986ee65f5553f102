"""The two servers behind Berth: those the environment names, else embedded ones.

What must not live here: how either is started.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from controlplane.embedded.postgres import Postgres
from controlplane.embedded.valkey import Valkey


class Server(Protocol):
    """What a supervisor needs to know of a server."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def alive(self) -> bool: ...
    @property
    def pid(self) -> int | None: ...


class Backing:
    """PostgreSQL and Redis. DATABASE_URL and REDIS_URL win, each for its own server."""

    def __init__(
        self, *, data: Path, run: Path, logs: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.servers: dict[str, Server] = {}
        database_url = os.environ.get("DATABASE_URL", "")
        redis_url = os.environ.get("REDIS_URL", "")
        if not database_url:
            postgres = Postgres(
                data=data, run=run / "pg", log=logs / "postgres.log", settings=settings
            )
            self.servers["postgres"] = postgres
            database_url = postgres.url
        if not redis_url:
            valkey = Valkey(run=run / "kv", log=logs / "valkey.log")
            self.servers["valkey"] = valkey
            redis_url = valkey.url()
        self.environ = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "CELERY_BROKER_URL": os.environ.get("CELERY_BROKER_URL") or broker_url(redis_url),
        }

    def start(self) -> None:
        """Start what is embedded. Raises StartFailed, with nothing left running."""
        try:
            for server in self.servers.values():
                server.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for server in reversed(self.servers.values()):
            server.stop()


def broker_url(redis_url: str) -> str:
    """Celery's spelling of a Redis URL: the two differ for unix sockets only."""
    url = urlsplit(redis_url)
    if url.scheme != "unix":
        return redis_url
    database = parse_qs(url.query).get("db", ["0"])[0]
    return f"redis+socket://{url.path}?virtual_host={database}"


def with_database(redis_url: str, database: int) -> str:
    """The same server, another of its numbered databases."""
    url = urlsplit(redis_url)
    if url.scheme == "unix":
        return f"unix://{url.path}?db={database}"  # geturl() would lose the empty host
    return url._replace(path=re.sub(r"^(/\d*)?$", f"/{database}", url.path)).geturl()
