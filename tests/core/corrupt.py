"""Random damage to a snapshot: any field of any object, duplicates, loops, losses."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

from scheduler.core.snapshot import Snapshot
from scheduler.core.units import Span

INTEGERS = (-(1 << 62), -1000, -1, 0, 1, 7, 1 << 36, 1 << 41, 1 << 62)
NAMES = ("", "a", "s", "t", "w0", "r0", "c0", "n00", "n00/0", "h100", "t4", "nobody")
type Path = tuple[str | int, ...]


def corrupted(of: Snapshot, pick: Random, times: int) -> Snapshot:
    """`of` after so many changes, each of one field or of one tuple's members."""
    for _ in range(times):
        paths = [path for path in _paths(of, ()) if path and path[0] != "schema"]
        # By what is changed rather than one by one: most of the fields are those of pods.
        kinds = sorted({_kind(path) for path in paths})
        kind = pick.choice(kinds)
        of = _changed(of, pick.choice([p for p in paths if _kind(p) == kind]), pick)
    return of


def _kind(path: Path) -> tuple[str, ...]:
    return tuple(step for step in path if isinstance(step, str))


def _paths(value: object, path: Path) -> Iterator[Path]:
    yield path
    if isinstance(value, tuple):
        for i, each in enumerate(value):
            yield from _paths(each, (*path, i))
    elif is_dataclass(value) and not isinstance(value, Span):
        for field in fields(value):
            yield from _paths(getattr(value, field.name), (*path, field.name))


def _changed(value: Any, path: Path, pick: Random) -> Any:  # Any: whatever stands there
    if not path:
        return _damaged(value, pick)
    step, *rest = path
    if isinstance(step, int):
        return (*value[:step], _changed(value[step], tuple(rest), pick), *value[step + 1 :])
    return replace(value, **{step: _changed(getattr(value, step), tuple(rest), pick)})


def _damaged(value: Any, pick: Random) -> Any:  # Any: as _changed
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return pick.choice(INTEGERS)
    if type(value) is str:
        return pick.choice(NAMES)
    if isinstance(value, Span):
        start = pick.randrange(1000)
        return Span(start, pick.randint(start + 1, 1000))
    if isinstance(value, tuple) and value and not isinstance(value[-1], Span):  # no pair
        nth = pick.randrange(len(value))
        lost = (*value[:nth], *value[nth + 1 :])
        return pick.choice([lost, (*value, value[nth])])
    return value
