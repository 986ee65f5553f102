"""The errors that services raise and the edges (API, pages, CLI) translate. No HTTP in here.

Each error says what was wrong, where (`pointer`, a JSON pointer into the input) and what would be
right.
"""

from collections.abc import Iterable, Mapping
from typing import Any


class AppError(Exception):
    """A refusal that the caller can act on; `code` is stable and documented."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        pointer: str = "",
        extra: Mapping[str, Any] | None = None,  # Any: JSON values for the answer
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.pointer = pointer
        self.extra = dict(extra or {})

    default_code = "error"


class Invalid(AppError):
    """The input can't be accepted as it is. `problems` holds one entry per field at fault."""

    default_code = "invalid"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        pointer: str = "",
        extra: Mapping[str, Any] | None = None,  # Any: JSON values for the answer
        problems: tuple["Problem", ...] = (),
    ) -> None:
        super().__init__(message, code=code, pointer=pointer, extra=extra)
        self.problems = problems or (Problem(pointer=pointer, code=self.code, message=message),)

    def within(self, root: str) -> "Invalid":
        """The same of a larger input that has this one at that pointer."""
        moved = (
            Problem(pointer=f"{root}{each.pointer}", code=each.code, message=each.message)
            for each in self.problems
        )
        return Invalid(self.message, code=self.code, extra=self.extra, problems=tuple(moved))


class NotAllowed(AppError):
    """The actor may see the object but not do this to it."""

    default_code = "not-allowed"


class NotFound(AppError):
    """No such object for this actor; the same answer whether it exists elsewhere or not."""

    default_code = "not-found"


class Conflict(AppError):
    """The object is not in the state that the caller assumed."""

    default_code = "conflict"


class Unavailable(AppError):
    """A part that Berth depends on does not answer; trying again later may work."""

    default_code = "unavailable"


class Problem:
    """One field at fault: where (JSON pointer), a stable code, a sentence."""

    __slots__ = ("code", "message", "pointer")

    def __init__(self, *, pointer: str, code: str, message: str) -> None:
        self.pointer = pointer
        self.code = code
        self.message = message

    def __repr__(self) -> str:
        return f"Problem({self.pointer!r}, {self.code!r}, {self.message!r})"


def no_such_field(known: Iterable[str]) -> str:
    """What is said of a member that an object, or of a field that a form, does not have."""
    names = ", ".join(sorted(known))
    return f"There is no such field; known: {names or 'none'}."
