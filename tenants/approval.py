"""Which steps a request for quota takes, by its size and where its project stands (ADR 0110).

Pure. A size is what the project would have in all, in thousandths of a device: who asks four times
for four asks for sixteen the last time, so no rule is passed by asking in parts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Level(StrEnum):
    PROJECT = "project"  # an approver of the project, or of anything above it
    TENANT = "tenant"  # of that tenant, or of anything above it
    FLEET = "fleet"  # of the whole fleet


@dataclass(frozen=True, slots=True)
class Rule:
    """From a size of `from_milli` on somebody of that level agrees too. Of `tenant` and below it;
    None is everywhere, where Level.TENANT is the tenant that owns the project. A step below that
    waits for `after_days` goes up to it, None never."""

    tenant: UUID | None
    level: Level
    from_milli: int
    after_days: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Who has to agree: somebody of that level; `tenant` says which one for Level.TENANT."""

    level: Level
    tenant: UUID | None = None


def steps(
    *,
    size_milli: int,
    tenants: Sequence[UUID],
    rules: Iterable[Rule],
    lapsed: Iterable[Step] = (),
) -> tuple[Step, ...]:
    """Those that a request of that size takes, from its project up. `tenants` are the one that
    owns the project and those above it, up to the root. More rules never make fewer steps. What
    nobody answered, `lapsed`, goes up to the next level that a rule has for it."""
    kept = list(rules)
    ups = (goes_up(step, tenants=tenants, rules=kept) for step in lapsed)
    needed = {_of(rule, tenants) for rule in kept if size_milli >= rule.from_milli} | {*ups}
    return tuple(step for step in _order(tenants) if step in needed or step.level is Level.PROJECT)


def goes_up(
    step: Step, *, tenants: Sequence[UUID], rules: Iterable[Rule], waited_days: int | None = None
) -> Step | None:
    """Where a step goes that has waited so long, None for long enough: the lowest level above it
    whose rule takes it then."""
    order = _order(tenants)
    above = order[order.index(step) + 1 :] if step in order else ()
    takes = {
        _of(rule, tenants)
        for rule in rules
        if rule.after_days is not None and (waited_days is None or waited_days >= rule.after_days)
    }
    return next((each for each in above if each in takes), None)


def _order(tenants: Sequence[UUID]) -> tuple[Step, ...]:
    above = (Step(Level.TENANT, tenant) for tenant in tenants)
    return (Step(Level.PROJECT), *above, Step(Level.FLEET))


def _of(rule: Rule, tenants: Sequence[UUID]) -> Step:
    own = tenants[0] if rule.level is Level.TENANT else None
    return Step(rule.level, rule.tenant or own)


def left(steps: Sequence[Step], taken: Iterable[Step]) -> tuple[Step, ...]:
    """Those still to take, in order."""
    done = set(taken)
    return tuple(step for step in steps if step not in done)


def due(steps: Sequence[Step], taken: Iterable[Step]) -> Step:
    """Whose turn it is once those are taken. Where all are, because a rule has gone meanwhile, the
    last is taken once more, by somebody else."""
    return next(iter(left(steps, taken)), steps[-1])
