"""Changes to a request that would help a workload that waits, as values, and in words.

Cheapest first, by what the user gives up: a preference (another flavor or cluster, a wider level
of the topology), then time or size (a run-time limit, cores, memory, fewer pods to begin with,
fewer or smaller GPUs), then safety (being preemptible, neighbours less far apart), then somebody
else's yes (quota, a budget, work of others that moves), then time itself.
"""

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.reasons import in_units


class Unit(StrEnum):
    """Of the numbers of a check or a change."""

    NONE = ""
    MILLI = "milli"  # thousandths of the flavor; of cores where it is about cores
    COUNT = "count"
    SECONDS = "s"
    MEBIBYTES = "mib"


class Change(StrEnum):
    """Stable codes, the cheapest first."""

    FLAVOR = "flavor"  # accept one more
    CLUSTER = "cluster"  # accept any
    TOPOLOGY = "topology"  # a wider level, or only preferred
    RUN_LIMIT = "run-limit"  # end before what it runs into
    CORES = "cores"  # fewer a pod
    MEMORY = "memory"  # less a pod
    PODS = "pods"  # start with fewer
    GPUS = "gpus"  # fewer devices, or slices, a pod
    SHARE = "share"  # a smaller part of a device a pod
    PREEMPTIBLE = "preemptible"  # give way to others
    ISOLATION = "isolation"  # accept less between neighbours
    QUOTA = "quota"  # ask for more
    BUDGET = "budget"  # ask for a larger one
    MOVES = "moves"  # let a plan lose more by moving others' work
    WAIT = "wait"  # for what ends by its run-time limit


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One change and what came of it. `old` and `new` are in `unit`, or names; None: no such.

    `starts_now`: it starts in the plan made now; else it waits for less, for evictions that begin
    at once or (WAIT) for `new` seconds. `subject` is the flavor of QUOTA by name, and the pod set
    of CORES, MEMORY, PODS, GPUS and SHARE by id, and of TOPOLOGY where it is that of a pod set; of
    QUOTA `new` is how much more, and of BUDGET, in thousandths of a device for an hour, as both of
    MOVES are, which bound what one plan loses. Whose budget it is, also of RUN_LIMIT, `subject`
    says by name.
    Of ISOLATION it is the flavor's, and `old` and `new` are isolations.
    """

    change: Change
    old: int | str | None
    new: int | str | None
    unit: Unit = Unit.NONE
    subject: str = ""
    starts_now: bool = True


def describe(found: Relaxation) -> str:
    """One sentence in English."""
    old, new = _words(found.old, found.unit), _words(found.new, found.unit)
    match found.change:
        case Change.FLAVOR:
            return f"Accept {new} too."
        case Change.CLUSTER:
            return f"Accept any cluster: {new} has room."
        case Change.TOPOLOGY:
            wanted = f"in one {new}, not in one {old}" if new else f"apart where one {old} is full"
            pods = f"the pods of {found.subject}" if found.subject else "its pods"
            return f"Let {pods} start {wanted}."
        case Change.RUN_LIMIT:
            if found.subject:
                return (
                    f"Set a run-time limit of at most {new}: the budget of {found.subject} covers"
                    " that."
                )
            return f"Set a run-time limit of at most {new}: it then ends before what is kept."
        case Change.CORES:
            return f"Ask for {new} cores a pod, not {old}."
        case Change.MEMORY:
            return f"Ask for {new} of memory a pod, not {old}."
        case Change.PODS:
            more = "more start with them if they fit"
            return f"Start with at least {new} of its pods, not {old}; {more}."
        case Change.GPUS:
            what = "GPU or slice" if found.new == 1 else "GPUs or slices"
            return f"Ask for {new} {what} a pod, not {old}."
        case Change.SHARE:
            what = "a GPU" if found.unit is Unit.MILLI else "GPU memory"
            return f"Ask for {new} of {what} a pod, not {old}."
        case Change.PREEMPTIBLE:
            return "Let it be preempted: then it may borrow."
        case Change.ISOLATION:
            return (
                f"Accept {found.subject}, with isolation {new}, not {old}: an owner may for the"
                " project, and the request must not ask for more."
            )
        case Change.QUOTA:
            now = "" if found.starts_now else "; what others borrow is then taken back for it"
            return f"Ask for {new} {found.subject} more of quota{now}."
        case Change.BUDGET:
            return f"Ask for {new} GPU-hours more in the budget of {found.subject}."
        case Change.MOVES:
            return (
                f"Let one plan lose {new} GPU-hours by moving work, not {old}, as an operator may:"
                " all that stops for it starts elsewhere at once."
            )
        case Change.WAIT:
            return f"Wait {new}: enough has ended by then, by its run-time limits."


def in_words(value: int, unit: Unit) -> str:
    """A number as people read it, without what it counts: "8", "1.5 GiB", "20 min"."""
    match unit:
        case Unit.MILLI:
            return in_units(value)
        case Unit.MEBIBYTES:
            return f"{value / 1024:g} GiB"
        case Unit.SECONDS:
            minutes = -(-value // 60)
            if value < 120:
                return f"{value} s"
            return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
    return str(value)


def _words(value: int | str | None, unit: Unit) -> str:
    return in_words(value, unit) if isinstance(value, int) else value or ""
