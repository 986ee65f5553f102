"""What the demo prints: lines with the name of who said them, in colour on a terminal.

What must not live here: deciding what is said.
"""

import os
from collections import deque
from typing import TextIO

OURS = "berth"
_KEPT_LINES = 60
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


class Terminal:
    """One stream, written by one thread."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._coloured = out.isatty() and "NO_COLOR" not in os.environ
        self._colours: dict[str, int] = {}
        self.lost = False  # the reader has gone, as with `| head`

    def say(self, text: str, who: str = OURS) -> None:
        """One or more lines by `who`."""
        for line in text.splitlines() or [""]:
            self.plain(f"{self._prefix(who)} {line}")

    def plain(self, text: str) -> None:
        """Text without a name before it."""
        if self.lost:
            return
        try:
            self._out.write(f"{text}\n")
            self._out.flush()
        except OSError:
            self.lost = True

    def _prefix(self, who: str) -> str:
        name = f"{who:<13}|"
        if not self._coloured:
            return name
        colour = self._colours.setdefault(who, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{name}\x1b[0m"


class Quiet(Terminal):
    """Shows our own lines and those of `steps`; keeps the last of the rest for a failure."""

    def __init__(self, out: TextIO, *, steps: str) -> None:
        super().__init__(out)
        self._steps = steps
        self._kept: deque[tuple[str, str]] = deque(maxlen=_KEPT_LINES)

    def say(self, text: str, who: str = OURS) -> None:
        if who == self._steps:
            self.plain(text)
        elif who == OURS:
            super().say(text, who)
        else:
            self._kept.append((text, who))

    def show_kept(self) -> None:
        for text, who in self._kept:
            super().say(text, who)
