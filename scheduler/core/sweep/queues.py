"""The queues of a plan, filled from a snapshot and its backlog."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.budgets import bound
from scheduler.core.cohorts import Cohorts
from scheduler.core.equivalents import Parts
from scheduler.core.holders import Holders
from scheduler.core.snapshot import Snapshot
from scheduler.core.sweep import state as s
from scheduler.core.sweep.backlog import MOST_PRIORITY, Backlog
from scheduler.core.sweep.state import Ints, Queues
from scheduler.core.units import FlavorId, ProjectId


class Waiting(NamedTuple):
    """The queues, and `Flavors.holders`: rows of projects beyond those that wait are theirs."""

    queues: Queues
    holders: Ints


def queues(
    *,
    snapshot: Snapshot,
    cohorts: Cohorts,
    levels: Ints,
    backlog: Backlog,
    decided: Sequence[int],
    holders: Holders,
    models: int,
    rows: Mapping[FlavorId, int],
    models_of: Ints,
    parts: Parts,
) -> Waiting:
    """`levels` are those of the backlog's projects. `decided`: rows of it that are in no queue.
    `models`: columns of `ahead`. `rows`: those of flavors, `models_of` the model of each."""
    projects = list(backlog.projects)
    workloads, queue = backlog.workloads.copy(), backlog.queue
    of_projects = np.zeros((len(projects), s.PROJECT_COLUMNS), np.int64)
    sizes = backlog.sizes()
    if decided:
        workloads[decided, s.STATE] = s.DECIDED
        queue = queue[workloads[queue, s.STATE] == s.WAITING]
        sizes -= np.bincount(workloads[decided, s.PROJECT], minlength=len(projects))
    beyond = of_projects[:, s.QUEUE_BEYOND] = np.cumsum(sizes)
    of_projects[:, s.QUEUE] = beyond - sizes
    busy = np.flatnonzero(sizes)
    first, last = queue[of_projects[busy, s.QUEUE]], queue[beyond[busy] - 1]
    of_projects[busy, s.MIXED] = workloads[first, s.PRIORITY] != workloads[last, s.PRIORITY]
    capped = {of.project for of in snapshot.queues if of.caps is not None}
    capped |= dict(bound(snapshot)).keys()
    of_projects[:, s.MEMBER] = [cohorts.number.get(project, 0) for project in projects]
    of_projects[:, s.BY_HAND] = [
        project in capped or project not in cohorts.number for project in projects
    ]
    evictable = _evictable(holders, backlog.projects, of_projects, rows, models_of)
    of_projects, of_flavors = _holders(
        holders, cohorts, backlog.projects, of_projects, rows, parts
    )
    made = Queues(
        projects=of_projects,
        levels=levels,
        ahead=np.full((len(projects), models + 1), s.NOBODY, np.int64),
        keys=np.zeros((len(projects), 3 + 2 * levels.shape[1]), np.int64),
        heap=np.zeros(len(projects), np.int64),
        workloads=workloads,
        queue=queue,
        beyond=np.zeros(len(queue), np.int64),
        left=np.zeros(len(queue), np.int64),
        classes=backlog.table.copy(),
        shut=np.zeros(len(backlog.classes), np.int64),
        evictable=evictable,
    )
    return Waiting(made, of_flavors)


def _evictable(
    holders: Holders,
    row: Mapping[ProjectId, int],
    projects: Ints,
    rows: Mapping[FlavorId, int],
    models_of: Ints,
) -> Ints:
    """`Queues.evictable`, of projects that wait, each told its range."""
    found = [
        (row[project], rows[flavor], min(priority, MOST_PRIORITY), count)
        for (project, flavor, priority), count in holders.evictable.items()
        if project in row and flavor in rows
    ]
    table = np.array(found, np.int64).reshape(len(found), 4)
    table = table[np.argsort(table[:, 0], kind="stable")]
    sizes = np.bincount(table[:, 0], minlength=len(projects))
    beyond = projects[:, s.EVICTABLE_BEYOND] = np.cumsum(sizes)
    projects[:, s.EVICTABLE] = beyond - sizes
    table[:, 1] = models_of[table[:, 1]]
    return np.ascontiguousarray(table[:, 1:])


def _holders(
    holders: Holders,
    cohorts: Cohorts,
    row: Mapping[ProjectId, int],
    projects: Ints,
    rows: Mapping[FlavorId, int],
    parts: Parts,
) -> tuple[Ints, Ints]:
    """`projects` with those added that have work to evict, or pods of it, and none that waits; who
    they are."""
    holding: dict[FlavorId, set[ProjectId]] = {}
    for project, flavor in {of[:2] for of in holders.evictable}:
        for of, _ in parts.charges(project=project, flavor=flavor, amount_milli=0):
            holding.setdefault(of, set()).add(project)
    found = set[ProjectId]().union(*holding.values())
    others = sorted(p for p in found if p not in row and p in cohorts.number)
    added = np.zeros((len(others), s.PROJECT_COLUMNS), np.int64)
    added[:, s.MEMBER] = [cohorts.number[project] for project in others]
    all_rows = {**row, **{project: len(row) + n for n, project in enumerate(others)}}
    width = max(map(len, holding.values()), default=0)
    table = np.full((len(rows), width), -1, np.int64)
    for flavor, theirs in holding.items():
        if flavor in rows:
            listed = sorted(all_rows[project] for project in theirs if project in all_rows)
            table[rows[flavor], : len(listed)] = listed
    return np.concatenate((projects, added)), table
