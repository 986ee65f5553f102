"""The core's frozen types from JSON's plain values, exactly: what was written comes back equal.

A dataclass is an object of its fields, a tuple a list, an enum its value. orjson writes them so by
itself, hence writing needs nothing here; reading goes by the types' own hints.
"""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, NewType, Union, cast, get_args, get_origin, get_type_hints

from scheduler.core.snapshot import SCHEMA

type _Kind = Any  # Any: a type as hints have it, of which many are no classes
type _Read = Callable[[object], Any]  # Any: of the type that it was made for


class Unreadable(ValueError):
    """What was stored is not what its type says, or is of another schema."""


def check_schema(schema: object) -> None:
    """Raises Unreadable unless values of that schema are read here."""
    if schema != SCHEMA:
        raise Unreadable(f"It is of schema {schema}; this version reads schema {SCHEMA} alone.")


def read[T](kind: type[T], value: object) -> T:
    """The `kind` that `value` was written from. Raises Unreadable, which says where and why.

    A field that is missing has its default.
    """
    try:
        return cast(T, _reader(cast(_Kind, kind))(value))
    except _Wrong as wrong:
        raise Unreadable(f"{kind.__name__}{wrong.where} {wrong.why}.") from wrong


class _Wrong(Exception):
    def __init__(self, why: str) -> None:
        self.why = why
        self.where = ""

    def inside(self, step: str) -> "_Wrong":
        self.where = step + self.where
        return self


def _not(right: str, value: object) -> _Wrong:
    return _Wrong(f"is {value!r:.60}; right would be {right}")


@cache
def _reader(kind: _Kind) -> _Read:
    if isinstance(kind, NewType):
        return _reader(kind.__supertype__)
    origin: object = get_origin(kind)
    if origin is tuple:
        first, *others = get_args(kind)
        return _list(_reader(first)) if others == [...] else _fixed([first, *others])
    if origin in (Union, UnionType):
        return _any_of(get_args(kind))
    if is_dataclass(kind):
        return _object(cast(type, kind))
    return _enum(kind) if issubclass(kind, Enum) else _plain(kind)


def _plain(kind: type) -> _Read:
    def plain(value: object) -> object:
        if type(value) is not kind:  # True is not 1 here
            raise _not(kind.__name__, value)
        return value

    return plain


def _enum(kind: type[Enum]) -> _Read:
    known = {each.value: each for each in kind}

    def member(value: object) -> Enum:
        if not isinstance(value, str) or value not in known:
            raise _not(" or ".join(known), value)
        return known[value]

    return member


def _any_of(kinds: Iterable[_Kind]) -> _Read:
    """Told apart by what JSON has in their stead."""
    readers: dict[type, _Read] = {}
    for kind in kinds:
        plain: _Kind = kind.__supertype__ if isinstance(kind, NewType) else kind
        stored = dict if is_dataclass(plain) else str if issubclass(plain, Enum) else plain
        readers[stored] = _reader(plain)

    def any_of(value: object) -> object:
        if type(value) not in readers:
            raise _not(" or ".join(sorted(kind.__name__ for kind in readers)), value)
        return readers[type(value)](value)

    return any_of


def _list(each: _Read) -> _Read:
    def many(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise _not("a list", value)
        return _all([each] * len(value), value)

    return many


def _fixed(kinds: list[_Kind]) -> _Read:
    readers = [_reader(kind) for kind in kinds]

    def fixed(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or len(value) != len(readers):
            raise _not(f"a list of {len(readers)}", value)
        return _all(readers, value)

    return fixed


def _all(readers: list[_Read], values: list[object]) -> tuple[object, ...]:
    found = []
    for nth, reader in enumerate(readers):
        try:
            found.append(reader(values[nth]))
        except _Wrong as wrong:
            raise wrong.inside(f"[{nth}]") from None
    return tuple(found)


def _object(kind: type) -> _Read:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}

    def made(value: object) -> object:
        if not isinstance(value, dict):
            raise _not("an object", value)
        if unknown := value.keys() - readers.keys():
            raise _Wrong(f"has the unknown field {min(unknown)}")
        if missing := needed - value.keys():
            raise _Wrong(f"lacks the field {min(missing)}")
        found = {}
        for name, one in value.items():
            try:
                found[name] = readers[name](one)
            except _Wrong as wrong:
                raise wrong.inside(f".{name}") from None
        try:
            return kind(**found)
        except ValueError as error:
            raise _Wrong(f"cannot be: {error}") from error

    return made
