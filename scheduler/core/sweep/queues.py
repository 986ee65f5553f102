"""The queues of a plan, filled from a snapshot and its backlog."""

from collections.abc import Sequence

import numpy as np

from scheduler.core.bounds.budgets import bound
from scheduler.core.quota.cohorts import FLEET, Cohorts
from scheduler.core.snapshot import Snapshot
from scheduler.core.sweep import state as s
from scheduler.core.sweep.backlog import Backlog
from scheduler.core.sweep.state import Ints, Queues
from scheduler.core.sweep.tree import GROUP_FLAVOR, GROUP_MEMBER


def queues(
    *,
    snapshot: Snapshot,
    cohorts: Cohorts,
    levels: Ints,
    backlog: Backlog,
    decided: Sequence[int],
    groups: Ints,
    models: int,
    models_of: Ints,
) -> Queues:
    """`levels` are those of the backlog's projects. `decided`: rows of it that are in no queue.
    `groups`: of who may be evicted. `models`: columns of `ahead`, `models_of` that of each
    flavor."""
    projects = list(backlog.projects)
    workloads, queue = backlog.workloads, backlog.queue
    states = np.zeros(len(workloads), np.int64)
    of_projects = np.zeros((len(projects), s.PROJECT_COLUMNS), np.int64)
    sizes = backlog.sizes()
    if decided:
        states[decided] = s.DECIDED
        queue = queue[states[queue] == s.WAITING]
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
    evictable = _evictable(groups, of_projects, len(cohorts.paths), models_of)
    return Queues(
        projects=of_projects,
        levels=levels,
        ahead=np.full((len(projects), models + 1), s.NOBODY, np.int64),
        keys=np.zeros((len(projects), 3 + 2 * levels.shape[1]), np.int64),
        heap=np.zeros(len(projects), np.int64),
        workloads=workloads,
        states=states,
        queue=queue,
        class_at=workloads[queue, s.CLASS],
        beyond=np.zeros(len(queue), np.int64),
        left=np.zeros(len(queue), np.int64),
        classes=backlog.table.copy(),
        shut=np.zeros(len(backlog.classes), np.int64),
        evictable=evictable,
    )


def _evictable(groups: Ints, projects: Ints, members: int, models_of: Ints) -> Ints:
    """`Queues.evictable`, of projects that wait, each told its range."""
    row_of = np.full(members, s.UNKNOWN)
    row_of[projects[:, s.MEMBER]] = np.arange(len(projects))
    row_of[FLEET] = s.UNKNOWN
    of = row_of[groups[:, GROUP_MEMBER]]
    listed = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]
    sizes = np.bincount(of[listed], minlength=len(projects))
    beyond = projects[:, s.EVICTABLE_BEYOND] = np.cumsum(sizes)
    projects[:, s.EVICTABLE] = beyond - sizes
    found: Ints = groups[listed, GROUP_FLAVOR:]
    found[:, s.OF_MODEL] = models_of[found[:, s.OF_MODEL]]
    return np.ascontiguousarray(found)
