"""Readers of untrusted JSON values that note every fault instead of stopping at the first."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from controlplane.api.errors import escape
from controlplane.api.fields import beyond
from controlplane.kernel import text
from controlplane.kernel.errors import Problem, no_such_field

type Json = Any  # a JSON value from outside

MISSING = object()


class Faults:
    """Collects problems; each reader returns a usable value or None after noting why not."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, pointer: str, code: str, message: str) -> None:
        self.found.append(Problem(pointer=pointer, code=code, message=message))

    def unknown(self, data: Mapping[str, Json], known: frozenset[str], root: str) -> None:
        if data.keys() <= known:
            return
        for name in data:
            if name not in known:
                pointer = f"{root}/{escape(str(name))}"
                self.add(pointer, "unknown-field", no_such_field(known))

    def member(
        self, data: Mapping[str, Json], key: str, root: str, known: frozenset[str], wanted: str
    ) -> dict[str, Json] | None:
        """An object with no other members than `known`, None when left out, null or at fault."""
        value, pointer = data.get(key), f"{root}/{key}"
        if value is None:
            return None
        if not isinstance(value, dict):
            self.add(pointer, "wrong-type", f"An object with {wanted} is wanted, or null.")
            return None
        self.unknown(value, known, pointer)
        return value

    def integer(
        self,
        data: Mapping[str, Json],
        key: str,
        root: str,
        low: int,
        high: int,
        default: int | None,
    ) -> int | None:
        """`default` None: the field is required."""
        value = data.get(key, MISSING)
        if value is MISSING:
            if default is None:
                self.add(f"{root}/{key}", "required", "This field is required.")
            return default
        if beyond(value, low=low, high=high):  # more digits than a message should repeat
            message = f"The number is not between {low} and {high}."
            self.add(f"{root}/{key}", "out-of-range", message)
        elif type(value) is not int:  # bool is an int in Python, not in JSON
            self.add(f"{root}/{key}", "wrong-type", "A whole number is wanted.")
        elif not low <= value <= high:
            self.add(f"{root}/{key}", "out-of-range", f"{value} is not between {low} and {high}.")
        else:
            return value
        return None

    def string(
        self, data: Mapping[str, Json], key: str, root: str, pattern: re.Pattern[str], wanted: str
    ) -> str:
        """A required string of a plain form."""
        value = data.get(key, MISSING)
        if value is MISSING:
            self.add(f"{root}/{key}", "required", "This field is required.")
        elif not isinstance(value, str):
            self.add(f"{root}/{key}", "wrong-type", "A string is wanted.")
        elif not pattern.fullmatch(value):
            self.add(f"{root}/{key}", "invalid", f"{text.shown(value)} is not {wanted}.")
        else:
            return value
        return ""

    def items(
        self,
        data: Mapping[str, Json],
        key: str,
        root: str,
        most: int,
        fault_of: Callable[[str], str | None],
    ) -> tuple[str, ...]:
        """A list of strings, empty when left out or at fault."""
        value = data.get(key)
        if value is None and key not in data:
            return ()
        if not isinstance(value, list):
            self.add(f"{root}/{key}", "wrong-type", "A list is wanted.")
            return ()
        if len(value) > most:
            self.add(f"{root}/{key}", "too-many", f"{len(value)} are too many; at most {most}.")
            return ()
        good = True
        for index, item in enumerate(value):
            fault = fault_of(item) if isinstance(item, str) else "A string is wanted."
            if fault:
                self.add(f"{root}/{key}/{index}", "invalid", fault)
                good = False
        return tuple(value) if good else ()

    def mapping(
        self,
        data: Mapping[str, Json],
        key: str,
        root: str,
        most: int,
        fault_of: Callable[[str, str], tuple[str, str] | None],
    ) -> dict[str, str]:
        """An object of strings, empty when left out or of the wrong type."""
        value = data.get(key)
        if value is None and key not in data:
            return {}
        if not isinstance(value, dict):
            self.add(f"{root}/{key}", "wrong-type", "An object is wanted.")
            return {}
        if len(value) > most:
            self.add(f"{root}/{key}", "too-many", f"{len(value)} are too many; at most {most}.")
            return {}
        for name, item in value.items():
            fault = (
                fault_of(name, item)
                if isinstance(item, str)
                else ("wrong-type", "A string is wanted.")
            )
            if fault:
                self.add(f"{root}/{key}/{escape(name)}", *fault)
        return value

    def once(self, values: tuple[str, ...] | tuple[int, ...], pointer: str) -> None:
        if len(set(values)) != len(values):
            self.add(pointer, "repeated", "Each may stand here once.")
