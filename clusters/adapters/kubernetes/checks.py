"""Readers of untrusted JSON: each returns what it promises or raises Malformed. Pure."""

import re
from datetime import UTC, datetime
from itertools import islice
from typing import Any

_WORD = re.compile(r"[\x21-\x7e]{1,253}")
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)

type Json = dict[str, Any]  # Any: an object of the API, checked by the functions below


class Malformed(ValueError):
    """An object is not what the API promises; it alone is left out."""


def mapping(body: Json, key: str) -> Json:
    """The object under `key`; {} when there is none."""
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed(f"{key} is no object")
    return value


def objects(body: Json, key: str) -> list[Json]:
    """The list of objects under `key`; [] when there is none."""
    value = body.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > 1000:
        raise Malformed(f"{key} is no list, or a huge one")
    if not all(isinstance(item, dict) for item in value):
        raise Malformed(f"{key} holds something that is no object")
    return value


def word(body: Json, key: str) -> str:
    """A name, uid or version: printable ASCII without blanks, at most 253 characters."""
    value = body.get(key)
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise Malformed(f"{key} is no name")
    return value


def optional_word(body: Json, key: str) -> str:
    return word(body, key) if body.get(key) else ""


def label_words(body: Json, *, most: int | None = 256) -> dict[str, str]:
    """A node's or pod's labels, the first `most`; those that are no labels are left out."""
    labels = body.get("labels")
    if not isinstance(labels, dict):
        return {}
    kept = {
        key: value
        for key, value in labels.items()
        if isinstance(value, str) and len(key) <= 317 and _printable(key, value)
    }
    return dict(islice(kept.items(), most))


def _printable(key: str, value: str) -> bool:
    return len(value) <= 253 and key.isprintable() and value.isprintable()


def count(text: str | None, *, most: int) -> int:
    """A whole number from 0 to `most` in ASCII digits; 0 when there is none."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) > most:
        raise Malformed(f"{text[:20]!r} is no count up to {most}")
    return int(text)


def moment(body: Json, key: str) -> datetime | None:
    """An RFC 3339 time, aware; None when there is none."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 40:
        raise Malformed(f"{key} is no time")
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise Malformed(f"{key} is no time") from None
    if at.tzinfo is None or at < _EARLIEST:
        raise Malformed(f"{key} is no time of ours")
    return at.astimezone(UTC)
