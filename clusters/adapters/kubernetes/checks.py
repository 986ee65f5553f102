"""Readers of untrusted JSON: each returns what it promises or raises Malformed. Pure."""

import re
from datetime import UTC, datetime
from typing import Any

import orjson

MOST_VALUES = 2_000_000
"""Of one answer: of 500 pods, or nodes, 4,000 each. As Python's objects they take up to 230 bytes
each, of which a list of empty objects would otherwise have millions in its 64 MiB."""
_WORD = re.compile(r"[\x21-\x7e]+")
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)

type Json = dict[str, Any]  # Any: an object of the API, checked by the functions below


class Malformed(ValueError):
    """An object is not what the API promises; it alone is left out."""


def document(data: bytes) -> Json:
    """The object that a text in JSON is."""
    # Not fewer than its values, which are not known before they all exist.
    if data.count(b",") + data.count(b"{") + data.count(b"[") > MOST_VALUES:
        raise Malformed(f"it has more than {MOST_VALUES:,} values")
    try:
        found = orjson.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Malformed("it is no JSON object")
    return found


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


def word(body: Json, key: str, *, longest: int = 253) -> str:
    """A name, uid or version: printable ASCII without blanks."""
    value = body.get(key)
    if not isinstance(value, str) or len(value) > longest or not _WORD.fullmatch(value):
        raise Malformed(f"{key} is no name")
    return value


def optional_word(body: Json, key: str) -> str:
    return word(body, key) if body.get(key) else ""


def label_words(body: Json) -> dict[str, str]:
    """A node's or pod's labels; those that are no labels are left out."""
    labels = body.get("labels")
    if not isinstance(labels, dict):
        return {}
    return {
        key: value
        for key, value in labels.items()
        if isinstance(value, str) and len(key) <= 317 and _printable(key, value)
    }


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
        local = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):  # near the ends of the calendar it may lie beyond them
        raise Malformed(f"{key} is no time") from None
    if at.tzinfo is None or local < _EARLIEST:
        raise Malformed(f"{key} is no time of ours")
    return local
