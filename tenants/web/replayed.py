"""What `tenants/_replayed.html` shows of days that were played again."""

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.services.replay_uses import Borrowed, Used
from scheduler.services.replays import Replayed, Told
from tenants import policy_words

TENTH_MILLI_S = 360_000
"""Of an hour of one whole unit."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Of a flavor, in thousandths of an hour of it, rounded up to tenths."""

    before_milli: int
    after_milli: int


@dataclass(frozen=True, slots=True)
class Row:
    """Of a project and a flavor. None for what is not told, `borrowed` also for nothing; `costs`
    has the money."""

    who: Told
    flavor: str
    used: Hours | None
    costs: Used | None
    borrowed: Hours | None


def shown(found: Replayed) -> dict[str, object]:
    """With each project what refuses most of its work first, as people read the rules, and what
    it holds of each flavor."""
    rows = [
        (told, [(policy_words.RULES[each.rule], each.count) for each in told.refused_by])
        for told in found.projects
    ]
    uses = [row for told in found.projects for row in _uses(told)]
    return {"replay": found, "rows": rows, "uses": uses}


def _uses(told: Told) -> Iterator[Row]:
    used = {each.flavor: each for each in told.used}
    borrowed = {each.flavor: each for each in told.borrowed}
    for flavor in sorted(used.keys() | borrowed.keys()):
        costs = used.get(flavor)
        yield Row(told, flavor, _hours(costs), costs, _hours(borrowed.get(flavor)))


def _hours(of: Used | Borrowed | None) -> Hours | None:
    if of is None:
        return None
    return Hours(_milli(of.before_milli_s), _milli(of.after_milli_s))


def _milli(milli_s: int) -> int:
    return -(-milli_s // TENTH_MILLI_S) * 100
