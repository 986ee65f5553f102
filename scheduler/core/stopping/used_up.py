"""Budgets in hard mode that are used up: what holds devices under one is stopped.

All of it, whatever it is: neither a least run time nor that it may not be preempted protects work
from a budget over itself, as those are for what others ask. Work without devices goes on. It goes
as whoever is preempted does, for nobody, least harm first. This comes before all else in a plan,
the rest of which is made as if the victims had been told to go; as nothing starts under what is
used up (`budgets`), none of them comes back for more.
"""

from collections.abc import Mapping

from scheduler.core.bounds.budgets import bound
from scheduler.core.held.elastic import staying
from scheduler.core.held.victims import Held, Victim
from scheduler.core.quota.devices import Devices
from scheduler.core.quota.equivalents import Parts
from scheduler.core.reasons import PreemptRule
from scheduler.core.snapshot import BudgetView, Snapshot
from scheduler.core.stopping.enforce import Cuts, sent_off
from scheduler.core.units import ProjectId


def stop(snapshot: Snapshot) -> tuple[Snapshot, Cuts]:
    """The snapshot with those on their way back who are stopped now, and who they are; `snapshot`
    itself when nobody is."""
    return sent_off(snapshot, found(snapshot))


def found(snapshot: Snapshot) -> tuple[Victim, ...]:
    """Who is stopped, least harm first; of a snapshot without faults."""
    over = stopping(snapshot)
    if not over:
        return ()
    devices = Devices(snapshot.flavors)
    parts = Parts(flavors=snapshot.flavors, queues=snapshot.queues)
    units = [
        Held(held, parts=parts)
        for held in snapshot.holding
        if held.project in over
        and devices.of((each.flavor, each.amount_milli) for each in staying(held))
    ]
    for unit in units:
        unit.settle(snapshot.at)
    units.sort(key=lambda unit: unit.order)
    return tuple(Victim.of(unit, PreemptRule.BUDGET) for unit in units)


def stopping(snapshot: Snapshot) -> Mapping[ProjectId, tuple[BudgetView, ...]]:
    """The projects under budgets in hard mode that are used up, and those, the nearest first."""
    if not any(budget.hard for budget in snapshot.budgets):
        return {}
    each = ((project, tuple(filter(_stops, over))) for project, over in bound(snapshot))
    return {project: budgets for project, budgets in each if budgets}


def _stops(budget: BudgetView) -> bool:
    return budget.hard and budget.used_milli_s >= budget.limit_milli_s
