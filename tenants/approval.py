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
    None is everywhere, where Level.TENANT is the tenant that owns the project."""

    tenant: UUID | None
    level: Level
    from_milli: int


@dataclass(frozen=True, slots=True)
class Step:
    """Who has to agree: somebody of that level; `tenant` says which one for Level.TENANT."""

    level: Level
    tenant: UUID | None = None


def steps(*, size_milli: int, tenants: Sequence[UUID], rules: Iterable[Rule]) -> tuple[Step, ...]:
    """Those that a request of that size takes, from its project up. `tenants` are the one that
    owns the project and those above it, up to the root. More rules never make fewer steps."""
    needed = {
        Step(rule.level, rule.tenant or (tenants[0] if rule.level is Level.TENANT else None))
        for rule in rules
        if size_milli >= rule.from_milli
    }
    above = [Step(Level.TENANT, tenant) for tenant in tenants]
    ordered = [*above, Step(Level.FLEET)]
    return (Step(Level.PROJECT), *(step for step in ordered if step in needed))


def left(steps: Sequence[Step], taken: Iterable[Step]) -> tuple[Step, ...]:
    """Those still to take, in order."""
    done = set(taken)
    return tuple(step for step in steps if step not in done)


def due(steps: Sequence[Step], taken: Iterable[Step]) -> Step:
    """Whose turn it is once those are taken. Where all are, because a rule has gone meanwhile, the
    last is taken once more, by somebody else."""
    return next(iter(left(steps, taken)), steps[-1])
