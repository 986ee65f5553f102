"""What a rule about rows is, what breaks one, and how that is told.

What must not live here: the rules themselves (promises.py), and how what breaks them is found
(invariants.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from scheduler.selectors.fleet import Row

MOST = 1000
"""Violations that are looked for, of each rule, and that can be accepted at once."""
TOLD = 20
"""Sentences about each rule; of the rest it is told how many they are."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that has to hold of all rows.

    `about` is the promise that it is a part of, an id of reliability 3, or ROOM. `name` stays as
    it is, whatever becomes of `sentence`, which is formatted with the columns found. The first
    `ids` of these say which rows break it; the others are how things stand with them now.
    """

    about: str
    name: str
    ids: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows that break a rule, by the columns found."""

    rule: Rule
    found: Row

    @property
    def key(self) -> str:
        """The same as long as it is of the same rule and rows."""
        return " ".join([self.rule.about, self.rule.name, *map(str, self.found[: self.rule.ids])])

    @property
    def sentence(self) -> str:
        return f"{self.rule.about}: {self.rule.sentence.format(*self.found)}"


def told(violations: Sequence[Violation]) -> list[str]:
    """Their sentences, those of one rule side by side and TOLD of it at most."""
    sentences: list[str] = []
    for rule, same in groupby(violations, key=lambda violation: violation.rule):
        of_rule = list(same)
        sentences += [violation.sentence for violation in of_rule[:TOLD]]
        if (more := len(of_rule) - TOLD) > 0:
            least = "at least " if len(of_rule) > MOST else ""
            sentences.append(f"{rule.about}: … and {least}{more} more like the last.")
    return sentences
