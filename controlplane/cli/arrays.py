"""Arrays, and what work waits for, as the command line has them."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

type Json = Any  # JSON values

_SIZE = re.compile(r"([0-9]{1,9})(?:%([0-9]{1,9}))?")
KINDS = {
    "after_success": "after-success", "after_end": "after-end", "after_failure": "after-failure",
}  # fmt: skip
OPTIONS = {
    "/size": "--array", "/most_at_once": "--array",
    "/depends_on": "--after-success, --after-end or --after-failure",
}  # fmt: skip
"""Of which option a part of the body comes, by JSON pointer."""


class Named(NamedTuple):
    """`kind` is workload or array."""

    kind: str
    id: str


class Size(click.ParamType[dict[str, int]]):
    """SIZE, or SIZE%MOST for at most so many at once; as the fields of a body."""

    name = "SIZE[%MOST]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int]:  # Any: as click has it
        found = _SIZE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not a size, as 100, or 100%10 for at most 10 at once.")
        size, most = found.groups()
        return {"size": int(size)} | ({"most_at_once": int(most)} if most else {})


class Work(click.ParamType[Named]):
    """A workload's id, or array:ID."""

    name = "ID|array:ID"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Named:  # Any: as click has it
        text = str(value)
        rest = text.removeprefix("array:")
        return Named("workload" if rest == text else "array", rest)


def needs(
    after: Mapping[str, tuple[Named, ...]], *, by_index: bool, hold: bool
) -> list[dict[str, Json]]:
    """`depends_on` of a body, by option; `by_index` and `hold` are of all of it. Raises UsageError
    where they are of nothing."""
    how: dict[str, Json] = {"by_index": True} if by_index else {}
    how |= {"on_unmet": "hold"} if hold else {}
    found = [
        {each.kind: each.id, "kind": kind, **how}
        for option, kind in KINDS.items()
        for each in after[option]
    ]
    if how and not found:
        raise click.UsageError(
            "--by-index and --hold go with --after-success, --after-end or --after-failure."
        )
    return found


def counts(array: Json) -> str:
    """How many of an array are in each state."""
    return ", ".join(f"{count} {state}" for state, count in array["states"].items() if count)
