"""Readers of environment variables. Each says in one sentence what is wrong with a bad value."""

import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def words(name: str, default: str) -> list[str]:
    """A list separated by spaces or commas."""
    return os.environ.get(name, default).replace(",", " ").split()


def integer(name: str, default: int) -> int:
    """A whole number above zero."""
    text = os.environ.get(name, str(default))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ImproperlyConfigured(f"{name} has to be a whole number above 0, not {text!r}.")
    return int(text)


def flag(name: str, *, default: bool) -> bool:
    """`1` or `0`."""
    text = os.environ.get(name, "1" if default else "0")
    if text not in {"0", "1"}:
        raise ImproperlyConfigured(f"{name} has to be 1 or 0, not {text!r}.")
    return text == "1"


def database(name: str, default: str) -> dict[str, Any]:  # Any: Django's settings shape
    """Django's settings for a `postgresql://user:password@host:port/name?host=/socket/dir` URL."""
    url = urlsplit(os.environ.get(name, default))
    if url.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            f"{name} has to start with postgresql://, not {url.scheme!r}: none else will do."
        )
    query = dict(parse_qsl(url.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")),
        "USER": unquote(url.username or query.pop("user", "")),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or query.pop("host", ""),
        "PORT": str(url.port or query.pop("port", "")),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**query, "pool": {"min_size": 1, "max_size": 8, "timeout": 10}},
    }
