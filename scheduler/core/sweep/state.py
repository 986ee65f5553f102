"""What a sweep reads and writes: tables of int64, in groups, and the names of their columns.

A row number stands for each thing. -1 is none, unless a line says otherwise.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numba import njit, typeof
from numpy.typing import NDArray

Ints = NDArray[np.int64]

UNLIMITED: Final = 1 << 61
UNKNOWN: Final = -1

# A pool's entry is one number that sorts as (level, free cores + 1, node).
NODE_BITS: Final = 20
CPU_BITS: Final = 33
LEVEL_SHIFT: Final = CPU_BITS + NODE_BITS
MOST_CPU: Final = (1 << CPU_BITS) - 2
MASKS: Final = 1 << 8
"""Bits in use of a device that is cut on demand: fewer than this."""

# Kinds of flavors and of pools: by cores, by empty devices, by bits in use of one device.
CORES: Final = 0
WHOLE: Final = 1
CUT: Final = 2

# nodes. USABLE: whether it has usable devices, -1 where it takes nothing at all. The pool of kind
# CORES, and its entry there.
NODE_CPU: Final = 0
NODE_MEMORY: Final = 1
USABLE: Final = 2
CORES_POOL: Final = 3
CORES_ENTRY: Final = 4
NODE_COLUMNS: Final = 5

# devices[node, device]. TAKEN: bits in use, 1 for the whole; -1 takes nothing. COUNTED: the same
# when the pool last looked. ENTRY: of devices of a node that are alike the first has one.
POOL: Final = 0
ENTRY: Final = 1
TAKEN: Final = 2
COUNTED: Final = 3
DEVICE_COLUMNS: Final = 4
# wholes[node, n]: POOL and ENTRY of the pools of kind WHOLE that the node stands in.
WHOLE_COLUMNS: Final = 2

# pools. TOTAL: devices, or cores; of a pool of kind CUT, how many devices by bits in use.
FIRST: Final = 0
SIZE: Final = 1
KIND: Final = 2
TOTAL: Final = 3
POOL_COLUMNS: Final = TOTAL + MASKS


class Unfit(Exception):
    """The tables can't hold the snapshot."""


class Hardware(NamedTuple):
    """What is free. `entries` has the sorted entries of each pool in its own range."""

    nodes: Ints
    devices: Ints
    wholes: Ints
    pools: Ints
    entries: Ints


# flavors. MODEL is a column of `ahead`. FLEET: the sum of all nominal quotas, at least 1. SPARE
# and CHARGED are scratch of one start. WHOLE_OF: the row of its model's quota, of which PART is
# charged for each ONE of it. OWN, OWN_LASTING and OWN_PROMISED are scratch of `guarding`.
FLAVOR_KIND: Final = 0
MODEL: Final = 1
FLEET: Final = 2
SPARE: Final = 3
CHARGED: Final = 4
WHOLE_OF: Final = 5
PART: Final = 6
OWN: Final = 7
OWN_LASTING: Final = 8
OWN_PROMISED: Final = 9
FLAVOR_COLUMNS: Final = 10

# cuts[flavor, bits]: what a slice costs there (-1: no start is free), the bits it takes, how many
# starts are free, and, not by bits, the masks that have room, the cheapest first.
COST: Final = 0
CUTS: Final = 1
STARTS: Final = 2
TRIED: Final = 3
CUT_COLUMNS: Final = 4


class Flavors(NamedTuple):
    """`pool_of[flavor, cluster]`. `soon[flavor, cluster]`: the thousandths that are free once all
    that leaves has left, or more."""

    flavors: Ints
    cuts: Ints
    pool_of: Ints
    soon: Ints


# members: of the tree, children after their parents.
PARENT: Final = 0
WEIGHT: Final = 1
DEPTH: Final = 2

# ledgers[ledger, flavor, member]. DRAWN, and what is drawn in PROMISED and AWAITED there, are
# filled only where something waits that may not be preempted, FIRM below. HOLDERS: of a project
# that holds some of the flavor that may be evicted, PODS_OR_DEVICES of its model; of the fleet, of
# projects that are not in the tree. GIVERS: of a member, what those below it hold in sum who are
# over, as all in between are; of the fleet -1 until asked. KEEPS: what is kept in a project, for
# the workload that is its KEEPER, which has its quota in BACK_IN seconds, UNKNOWN is never.
USED: Final = 0
PROMISED: Final = 1
KEPT: Final = 2
CAPACITY: Final = 3
LIMIT: Final = 4
NOMINAL: Final = 5
LASTING: Final = 6
OVER: Final = 7
CEILING: Final = 8
QUOTED: Final = 9
DRAWN: Final = 10
PROMISED_DRAWN: Final = 11
FIRM_CEILING: Final = 12
AWAITED: Final = 13
HOLDERS: Final = 14
GIVERS: Final = 15
KEEPS: Final = 16
KEEPER: Final = 17
BACK_IN: Final = 18
LEDGERS: Final = 19


class Tree(NamedTuple):
    """Who may use how much, as in `quota` and `share`. `shares[member]`: UNKNOWN until asked."""

    members: Ints
    ledgers: Ints
    shares: Ints


# projects. Their QUEUE is a range of `queue`, of which NEXT is not yet decided. BY_HAND: none of
# it is plain. EVICTABLE: its range of `evictable`. LIMITED: whether any has a run-time limit; set
# where there is a guard.
MEMBER: Final = 0
QUEUE: Final = 1
QUEUE_BEYOND: Final = 2
NEXT: Final = 3
MIXED: Final = 4
BY_HAND: Final = 5
EVICTABLE: Final = 6
EVICTABLE_BEYOND: Final = 7
LIMITED: Final = 8
PROJECT_COLUMNS: Final = 9

# evictable: how many devices of a model, or pods where they have none, work of a project and a
# priority holds that may be evicted some day.
OF_MODEL: Final = 0
OF_PRIORITY: Final = 1
PODS_OR_DEVICES: Final = 2

# levels[project, level]: the member that is compared there, and what its share is followed by.
COMPARED: Final = 0
PAST: Final = 1

# ahead[project, column]: priorities, as `Admission.claim` sets them; further columns are models.
ANY: Final = 0
NO_MODEL: Final = 1
NOBODY: Final = -(1 << 60)

# workloads. TURN is when the submission was as which it queues, NAME the place of that one's id in
# the order of ids. LIMIT_S: its run-time limit, UNLIMITED without one.
PRIORITY: Final = 0
SUBMITTED: Final = 1
NAME: Final = 2
CLASS: Final = 3
PROJECT: Final = 4
TURN: Final = 5
LIMIT_S: Final = 6
WORKLOAD_COLUMNS: Final = 7

# states, of workloads: all that is written of them.
WAITING: Final = 0
DECIDED: Final = 1

# classes. CAPPED: whether they are an array that has a cap, and decided by hand. LEFT: so many did
# not start. LIKE: the class that has the same reason for that, or itself if none is told before;
# such are a chain, of which this one is followed by UNLIKE. OLDEST: when the first of them was
# submitted, whether it waits or not; set where there is a guard.
REQUEST: Final = 0
CLOSED: Final = 1
CAPPED: Final = 2
LEFT: Final = 3
LISTED: Final = 4
LIKE: Final = 5
UNLIKE: Final = 6
OLDEST: Final = 7
CLASS_COLUMNS: Final = 8


class Queues(NamedTuple):
    """Who is next, as in `order`. `shut` lists closed classes; `keys[project]` is its head's.

    `class_at` is the class of who stands there in `queue`, and `beyond` where the next of another
    one comes, 0 where that is not known yet: a head steps over many, so each is found once.
    `left` lists who did not start.
    """

    projects: Ints
    levels: Ints
    ahead: Ints
    keys: Ints
    heap: Ints
    workloads: Ints
    states: Ints
    queue: Ints
    class_at: Ints
    beyond: Ints
    left: Ints
    classes: Ints
    shut: Ints
    evictable: Ints


# requests: ranges of `sets` and `options`, accepted clusters as bits, pods in all. TOLD is scratch
# of `compare`: the class of it that is told of last.
SETS: Final = 0
SETS_BEYOND: Final = 1
OPTIONS: Final = 2
OPTIONS_BEYOND: Final = 3
CLUSTERS: Final = 4
HARD: Final = 5
PODS: Final = 6
FIRM: Final = 7
TOLD: Final = 8
REQUEST_COLUMNS: Final = 9

# sets: pod sets in the order in which they are placed. NUMBER is their place in the workload.
COUNT: Final = 0
LEAST: Final = 1
CPU: Final = 2
MEMORY: Final = 3
GPUS: Final = 4
AMOUNT: Final = 5
NUMBER: Final = 6
SET_COLUMNS: Final = 7

# options: a range of `needs` (flavor, amount), the first of its flavors in `accepted`, one for
# each set. HOPE: whether the hardware could ever hold it. STUCK: whether evictions are of no use.
# THERE: whether it would find room if nothing were held.
NEEDS: Final = 0
NEEDS_BEYOND: Final = 1
ACCEPTED: Final = 2
FULL: Final = 3
HOPE: Final = 4
STUCK: Final = 5
THERE: Final = 6
OPTION_COLUMNS: Final = 7


class Work(NamedTuple):
    """What is asked for, as in `request`. `dearness[option, cluster]`: 0 where it is charged least
    for all its pods, 1 where that is next, and so on."""

    requests: Ints
    sets: Ints
    options: Ints
    needs: Ints
    accepted: Ints
    dearness: Ints


# admits: of which workload, where, its first row of `places`, by which option.
ADMIT_COLUMNS: Final = 4
# places. OF_DEVICES: whole devices as bits, 0 for slices.
OF_WORKLOAD: Final = 0
OF_CLUSTER: Final = 1
FIRST_PLACE: Final = 2
OF_OPTION: Final = 3
OF_SET: Final = 1
OF_NODE: Final = 2
OF_DEVICES: Final = 4
FIRST_SLICE: Final = 5
PLACE_COLUMNS: Final = 6

# counts. Room is kept for who was submitted by WAITED_SINCE, quota for who was by GUARDED.
# RECLAIMS: whether what others borrow may be taken back.
ADMITTED: Final = 0
PLACED: Final = 1
SLICED: Final = 2
SHUT: Final = 3
HEADS: Final = 4
PROMISES: Final = 5
CAN_EVICT: Final = 6
COMING: Final = 7
WAITED_SINCE: Final = 8
OFFERED: Final = 9
GUARDED: Final = 10
RECLAIMS: Final = 11
COUNTS: Final = 12

# offers[admit, cluster]: what was free there just before, and how many pods would have started,
# UNKNOWN where that was not asked. Written where counts[OFFERED], of clusters that are accepted.
FREE: Final = 0
PODS_THERE: Final = 1
OFFER_COLUMNS: Final = 2

# passed[admit, nth]: why the nth option of its request was not taken, UNKNOWN of the one taken and
# of those that were not come to. Written where a request has several.
NO_ROOM: Final = 0
NOT_GUARANTEED: Final = 1
NO_QUOTA: Final = 2


class Log(NamedTuple):
    """What was started, and what else it might have started on. `slices`: device and bits. `free`
    is scratch, per cluster."""

    admits: Ints
    places: Ints
    slices: Ints
    counts: Ints
    free: Ints
    offers: Ints
    passed: Ints


class State(NamedTuple):
    """All of it."""

    hardware: Hardware
    flavors: Flavors
    tree: Tree
    queues: Queues
    work: Work
    log: Log


GROUPS: Final = (Hardware, Flavors, Tree, Queues, Work, Log)
_ONE = {"entries", "shares", "heap", "states", "queue", "class_at", "beyond", "left"}
_ONE |= {"shut", "accepted", "counts", "free"}
_THREE = {"devices", "wholes", "cuts", "ledgers", "levels", "offers"}


def dimensions(name: str) -> int:
    """Of the table of that name."""
    return 1 if name in _ONE else 3 if name in _THREE else 2


def _like(group: Any) -> Any:
    return group(*(np.zeros((1,) * dimensions(name), np.int64) for name in group._fields))


_typeof: Any = typeof  # it has no types itself
STATE_TYPE: Final = _typeof(State(*map(_like, GROUPS)))
HARDWARE_TYPE: Final = _typeof(_like(Hardware))
INT_TYPE: Final = _typeof(1 << 40)
BOOL_TYPE: Final = _typeof(True)


# Without numba's counts of references to arrays, which would take three quarters of the time: so
# nothing may make an array. Nor does anything divide by 0. Any: the options have no type.
_OPTIONS: Any = {"_nrt": False, "error_model": "numpy"}
_PART: Any = njit(forceinline=True, **_OPTIONS)


def compiled[F: Callable[..., Any]](function: F) -> F:
    """Part of an `entry`, and put into it: a call would hand over each table as seven numbers or
    more, which takes longer than most of what is called."""
    return cast(F, _PART(function))


def entry[F: Callable[..., Any]](*types: Any) -> Callable[[F], F]:
    """Compiled now with all its parts, and kept on disk where there is a place to keep it.

    It is called without a look at the types of its arguments, which would take longer than most of
    what it does: so they have to be these, and arrays contiguous.
    """

    def compile_now(function: F) -> F:
        try:
            made = njit(types, cache=True, **_OPTIONS)(function)
        except (RuntimeError, OSError):
            made = njit(types, **_OPTIONS)(function)
        return cast(F, made.get_overload(types))

    return compile_now
