"""Why a workload is not placed, and why one is preempted: closed enums with numbers, as values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from scheduler.core.wording import coming, moment, opens, outages, shape


class ReasonCode(StrEnum):
    """Stable codes, which the API documents; each has a sentence in `describe`."""

    NEVER_ADMISSIBLE = "never-admissible"  # asks more than nominal + borrowing could ever allow
    NO_MATCHING_FLAVOR = "no-matching-flavor"  # no accepted flavor exists on an accepted cluster
    EXCEEDS_CAPACITY = "exceeds-capacity"  # larger than any node, or than the accepted clusters
    QUOTA_USED = "quota-used"  # what the project itself may hold, or is guaranteed, is in use
    COHORT_USED = "cohort-used"  # nothing left to borrow
    NO_FIT = "no-fit"  # free in sum, but no node or legal span (or no gang of nodes) holds it now
    NO_FREE_CAPACITY = "no-free-capacity"  # the accepted clusters are full
    WAITING_FOR_PREEMPTION = "waiting-for-preemption"  # victims are being evicted for it
    BEHIND = "behind"  # the same queue's head comes first
    CLUSTER_UNAVAILABLE = "cluster-unavailable"  # accepted clusters lost, degraded
    WAITING_FOR_NODE = "waiting-for-node"  # it would start on nodes that can come
    HARDWARE_HELD = "hardware-held"  # it would fit in a cluster or pool whose queue is held
    BACKOFF = "backoff"  # a failed start is retried later
    ADMISSION_STOPPED = (
        "admission-stopped"  # a promise is broken, or a cluster unread since a restore
    )
    QUEUE_HELD = "queue-held"  # nothing of its project, or of a tenant above it, starts
    RESERVED = "reserved"  # it might still run when what it would hold is kept for others
    ROOM_KEPT = "room-kept"  # it has waited so long that what it needs first is kept for it
    KEPT_FOR_OTHERS = "kept-for-others"  # it would fit, but that is kept for who comes first
    QUOTA_KEPT = "quota-kept"  # its project keeps what is left for older work of it
    CAP_REACHED = "cap-reached"  # as much of its project, or of its submitter, runs as may at once
    BUDGET_USED = "budget-used"  # of its project or above: used up, or does not cover it
    RUN_TIME_UNKNOWN = "run-time-unknown"  # a budget covers only work with a run-time limit
    ARRAY_FULL = "array-full"  # as many of its array run as may at once
    GATE = "gate"  # somebody has to open a gate of it first
    DEPENDENCY = "dependency"  # others that it was told to wait for have not ended
    STRAYS = "strays"  # pods of a later attempt of it run, of which the database knows nothing
    GATHERING = "gathering"  # not all its pods, which its cluster's controllers make, are there
    ISOLATION = "isolation"  # the flavor keeps neighbours less apart than is accepted
    INVALID = "invalid"  # what is stored of it contradicts itself; the fault says how


class Cap(StrEnum):
    """Which cap a CAP_REACHED tells of: the number called `cap`."""

    RUNNING = "max_running"
    USER_RUNNING = "user_max_running"
    USER_GPUS = "user_max_gpus_milli"


BY_PROJECT = "project"
BY_REQUEST = "request"
BINDS_CORES = "cores"
BINDS_MEMORY = "memory"
BINDS_BOTH = "cores and memory"


class FaultKind(StrEnum):
    """How a snapshot contradicts itself."""

    DUPLICATE_ID = "duplicate-id"  # one id, several objects
    QUANTITY = "quantity"  # negative, or larger than anything real
    WEIGHT = "weight"  # zero, negative, or larger than anything real
    UNKNOWN_FLAVOR = "unknown-flavor"  # held, and in no list
    UNKNOWN_NODE = "unknown-node"
    UNKNOWN_DEVICE = "unknown-device"  # held on a node that does not have it
    UNKNOWN_COHORT = "unknown-cohort"  # somebody's parent
    COHORT_CYCLE = "cohort-cycle"  # a cohort above itself
    TOO_DEEP = "too-deep"  # a cohort below too many others
    ILLEGAL_SLICES = "illegal-slices"  # MIG slices that the model has not, or that overlap
    OVER_ALLOCATED = "over-allocated"  # two holders of one part of a device
    ODD_SHARE = "odd-share"  # one that is not of whole replicas of its device
    NEGATIVE_FREE = "negative-free"  # more cores or memory held than the node has
    RESERVATION = "reservation"  # one that nobody can mean
    BUDGET = "budget"  # one that nobody can mean
    IMPOSSIBLE_REQUEST = "impossible-request"  # pods that nobody can mean


class Subject(StrEnum):
    """What a fault is about."""

    FLAVOR = "flavor"
    CLUSTER = "cluster"
    NODE = "node"
    DEVICE = "device"
    COHORT = "cohort"
    PROJECT = "project"
    WORKLOAD = "workload"
    PLACEMENT = "placement"


class PreemptRule(StrEnum):
    PRIORITY = "priority"  # lower priority in the same project
    RECLAIM = "reclaim"  # its project borrows what the preemptor's project is guaranteed
    CONSOLIDATE = "consolidate"  # it starts again elsewhere at once, so that the preemptor fits
    BETTER = "better"  # it starts again on an earlier of its flavors; it is its own preemptor
    QUOTA = "quota"  # its quota was lowered below what is held, and is enforced; for nobody
    BUDGET = "budget"  # a budget in hard mode over it is used up; for nobody


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the numbers that failed, as (name, value) pairs sorted by name.

    Amounts are in thousandths of a flavor (`…_milli`), counts in pods (`…_count`). When devices
    would do and something else does not, `binds` says what: BINDS_CORES, BINDS_MEMORY or
    BINDS_BOTH. When it would fit apart, `level` says in what of its topology all of it has to be,
    `domains_count` how many of those there are, and `most_pods_count` how many pods one takes; or
    `pod_set` by name, of which `groups_count` groups of `pods_count` have to be, and of which
    `most_groups_count` would fit with no other pods.
    Of a budget they are in thousandths of a device for an hour: used, its limit and, in safe mode,
    what is asked, what others that run may still use (`coming`) and what is left beside them. Of
    one in hard mode, which is used up, `mode` is "hard".
    `given` and `least` are isolations: the flavor's, and that below which BY_PROJECT or BY_REQUEST
    nothing is accepted. A pod set that asks for memory of a device asks `gpu_memory_mib`, and one
    of the flavor has `largest_gpu_memory_mib`.
    `moves_…` tell of slices that might move to make room: how many, and the work lost by it, and
    that might be lost, in seconds of a device.
    """

    code: ReasonCode
    numbers: tuple[tuple[str, int | str], ...] = ()


_SENTENCES: dict[ReasonCode, str] = {
    ReasonCode.NEVER_ADMISSIBLE: (
        "{asked} asked; the project may hold at most {most} {flavor}"
        " ({nominal} nominal + {borrowable} borrowed)."
    ),
    ReasonCode.NO_MATCHING_FLAVOR: "No accepted cluster has {flavor}.",
    ReasonCode.EXCEEDS_CAPACITY: (
        "Larger than the hardware: {shape} asked, {asked} in all; even empty, one cluster has"
        " {free} and one node {largest_free}."
    ),
    ReasonCode.QUOTA_USED: (
        "{asked} asked and {used} in use; the project may hold at most {most} {flavor}"
        " ({nominal} nominal + {borrowable} borrowed)."
    ),
    ReasonCode.COHORT_USED: (
        "{asked} {flavor} asked and {available} to be had: the project uses {used} of {nominal}"
        " nominal, and the others leave no more to borrow."
    ),
    ReasonCode.NO_FIT: (
        "{asked} {flavor} asked and {free} free, but not where it fits: {shape} asked; the most"
        " free on one node is {largest_free}."
    ),
    ReasonCode.NO_FREE_CAPACITY: "{asked} {flavor} asked, {free} free in one cluster.",
    ReasonCode.WAITING_FOR_PREEMPTION: (
        "Waits for {coming} {flavor}; workloads being evicted for it now: {victims}."
    ),
    ReasonCode.BEHIND: "Other workloads start first ({admitted} in this cycle).",
    ReasonCode.CLUSTER_UNAVAILABLE: (
        "Accepted clusters that are lost, degraded or just back: {clusters}; no other is accepted."
    ),
    ReasonCode.WAITING_FOR_NODE: (
        "{asked} {flavor} asked, {free} free in one cluster. It would start with {coming}"
    ),
    ReasonCode.BACKOFF: "The last start failed; it is tried again in {retry_in} s.",
    ReasonCode.INVALID: "What is known of it contradicts itself: {fault}.",
    ReasonCode.ADMISSION_STOPPED: (
        "It fits, but nothing new starts while an operator looks into a broken promise, or before"
        " each cluster is listed after the database was put back."
    ),
    ReasonCode.HARDWARE_HELD: (
        "Held, so that nothing new starts there until it is opened again: {held}. No other cluster"
        " that is accepted takes new work."
    ),
    ReasonCode.QUEUE_HELD: "Held, so that nothing starts until it is opened again: {held}.",
    ReasonCode.RESERVED: (
        "It would run into a reservation: {opens} {kept} {flavor} are kept for others, and with it"
        " {lacking} of them would be missing. With a run-time limit that ends before it may start."
    ),
    ReasonCode.ROOM_KEPT: (
        "{kept} {flavor} are kept for it as they come free; work without a run-time limit has to"
        " end before it starts."
    ),
    ReasonCode.KEPT_FOR_OTHERS: (
        "{asked} {flavor} would fit, but are kept for work that comes first and has waited long;"
        " work with a run-time limit that ends before may go ahead."
    ),
    ReasonCode.QUOTA_KEPT: (
        "{asked} {flavor} asked and {available} to be had, but {kept} are kept for work of its"
        " project that comes first and has waited long; what ends before by its own limit may go"
        " ahead."
    ),
    ReasonCode.CAP_REACHED: "{used} workloads of the project run; at most {limit} may at once.",
    ReasonCode.BUDGET_USED: (
        "The budget of {budget} is used up: {used} of {limit} GPU-hours. Nothing new starts on"
        " GPUs before it ends on {until}, or is raised; what {runs}."
    ),
    ReasonCode.RUN_TIME_UNKNOWN: (
        "The budget of {budget} covers only work that says how long it runs: it starts with a"
        " run-time limit, or once the budget ends on {until}."
    ),
    ReasonCode.ARRAY_FULL: "{used} of its array run; at most {limit} may at once.",
    ReasonCode.GATE: "It waits for {owner} to open its gate {gate}, since {since}.",
    ReasonCode.STRAYS: (
        "{strays} of its pods are in {cluster} that the database, put back from a backup, does not"
        " know; it starts again once they are gone."
    ),
    ReasonCode.GATHERING: (
        "{missing} of the {wanted} pods that start together are not there yet: they are made in"
        " its cluster."
    ),
    ReasonCode.ISOLATION: (
        "{flavor} isolates by {given} where neighbours share a GPU; {by} accepts no less than"
        " {least}."
    ),
    ReasonCode.DEPENDENCY: "It starts after other work. Still to end: {unmet}; first {first}.",
}
_KEPT = (
    "{kept} {flavor} are kept for it from those who come after it; by the run-time limits of what"
    " runs there, the last of them is free {starts}."
)
_CAPS = {
    Cap.USER_RUNNING: (
        "{used} workloads of its submitter run in the project; at most {limit} may at once."
    ),
    Cap.USER_GPUS: (
        "{asked} GPUs asked; its submitter holds {used} in the project, and may hold {limit} at"
        " once. Slices and shares count as parts of a GPU."
    ),
}
_COVERED = (
    "{asked} GPU-hours asked by its run-time limit, and {left} left in the budget of {budget}"
    " before it ends on {until}: {used} of {limit} are used, and what runs or starts may use"
    " {coming}."
)
_GPU_MEMORY = "{gpu_memory} of GPU memory asked; one GPU of {flavor} has {largest_gpu_memory}."
_GPU_MEMORY_UNKNOWN = "{gpu_memory} of GPU memory asked; how much {flavor} has is not registered."
ISOLATED_BY = {"none": "nothing", "memory": "memory limits alone", "hardware": "hardware"}
"""What keeps neighbours apart, within a sentence."""
_ISOLATION = ISOLATED_BY | {BY_PROJECT: "the project", BY_REQUEST: "what was asked for"}
_FIRM = {
    ReasonCode.NEVER_ADMISSIBLE: (
        "{asked} asked; {guaranteed} {flavor} are guaranteed to the project and those above it,"
        " and work that may not be preempted does not borrow."
    ),
    ReasonCode.QUOTA_USED: (
        "{asked} asked and {available} left of the {guaranteed} {flavor} guaranteed to the project"
        " and those above it; work that may not be preempted does not borrow."
    ),
}
_MOVES = (
    " Room could be made by moving {moves} of others' slices, which loses {moves_lost} GPU-hours"
    " of their work; {moves_budget} may be lost now."
)
_IN_VAIN = (
    "It was to start after other work, which has ended otherwise: {in_vain} of {unmet} it waits"
    " for; first {first}. It waits until somebody releases or cancels it."
)
_NO_QUOTA = "{asked} asked; the project has no quota of {flavor}."
_NO_FLAVOR = "No accepted flavor exists on an accepted cluster."
_OUT = (
    "{asked} {flavor} asked, {free} free in one cluster that takes new work. It would fit where"
    " none is taken now: {outages}."
)
_ELSEWHERE_HELD = (
    "{asked} {flavor} asked, {free} free in one cluster that takes new work. It would fit where"
    " nothing new starts until it is opened again: {held}."
)
_BINDS = {
    ReasonCode.EXCEEDS_CAPACITY: (
        "Larger than the hardware in {binds}: {pods} asked; even empty, one node with {flavor} has"
        " {largest}."
    ),
    ReasonCode.NO_FIT: (
        "{asked} {flavor} asked and {free} free, but not with enough {binds}: {pods} asked; the"
        " most free on one node that has the {flavor} is {largest}."
    ),
}


def describe(reason: Reason) -> str:
    """One sentence in English with the numbers; amounts in devices, slices or cores.

    A number that the reason lacks reads as 0.
    """
    words = _Words()
    milli = {name: value for name, value in reason.numbers if isinstance(value, int)}
    for name, value in reason.numbers:
        plain, _, unit = name.rpartition("_") if isinstance(value, int) else (name, "", "")
        words[plain or name] = in_units(int(value)) if unit == "milli" else str(value)
    most = milli.get("nominal_milli", 0) + milli.get("borrowable_milli", 0)
    words["most"] = in_units(most)
    words["shape"] = shape(milli, words["pod"], words["pod_cpu"])
    words["opens"] = opens(milli.get("opens_in_s", 0))
    sentence = _SENTENCES[reason.code]
    if reason.code is ReasonCode.ROOM_KEPT and "starts_in_s" in milli:
        sentence = _KEPT
        words["starts"] = opens(milli["starts_in_s"])
    if "in_vain_count" in milli:
        sentence = _IN_VAIN
    if "ends_at" in milli:
        words["until"] = datetime.fromtimestamp(milli["ends_at"], UTC).strftime("%-d %b %Y (UTC)")
        words["runs"] = "ran under it was stopped" if "mode" in words else "runs goes on"
    if reason.code is ReasonCode.GATE:
        sentence += _tell_gate(words, milli)
    if reason.code is ReasonCode.BUDGET_USED and "asked" in words:
        sentence = _COVERED
    if "cap" in words:
        sentence = _CAPS.get(Cap(words["cap"]), sentence)
    if "level" in words:
        sentence = _together(reason.code, milli, of_set="pod_set" in words)
    if "binds" in words:
        sentence = _BINDS.get(reason.code, sentence)
        _tell_binding(words, milli)
    if reason.code is ReasonCode.CLUSTER_UNAVAILABLE and "flavor" in words:
        sentence = _OUT
        words["outages"] = outages(milli)
    if reason.code is ReasonCode.WAITING_FOR_NODE:
        words["coming"] = coming(milli, words["node_pools"])
    if reason.code is ReasonCode.HARDWARE_HELD and "flavor" in words:
        sentence = _ELSEWHERE_HELD
    if "guaranteed" in words:
        sentence = _FIRM.get(reason.code, sentence)
    elif reason.code is ReasonCode.NEVER_ADMISSIBLE and not most:
        sentence = _NO_QUOTA
    if reason.code is ReasonCode.NO_MATCHING_FLAVOR and "flavor" not in words:
        sentence = _NO_FLAVOR
    if "gpu_memory_mib" in milli:
        sentence = _GPU_MEMORY if milli["largest_gpu_memory_mib"] else _GPU_MEMORY_UNKNOWN
        for name in ("gpu_memory", "largest_gpu_memory"):
            words[name] = f"{milli[f'{name}_mib'] / 1024:.4g} GiB"
    if reason.code is ReasonCode.ISOLATION:
        words |= {each: _ISOLATION.get(words[each], "") for each in ("by", "given", "least")}
    if "moves_count" in milli:
        sentence += _MOVES
        words["moves_lost"] = in_units(milli["moves_lost_s"] * 1000 // 3600)
        words["moves_budget"] = in_units(milli["moves_budget_s"] * 1000 // 3600)
    return sentence.format_map(words)


def _together(code: ReasonCode, milli: dict[str, int], *, of_set: bool) -> str:
    of, many = (" of {pod_set}", milli.get("groups_count", 1) > 1) if of_set else ("", False)
    if not milli.get("domains_count"):
        whose = f"The pods{of}" if of_set else "All its pods"
        return whose + " have to be in one {level}, and of no node is known in which it is."
    each = f"{'each' if many else 'all'} {{pods}} pods{of} have to be in one {{level}}"
    takes = "{most_pods}"
    if many:
        each += ", in {groups} groups"
        takes += " pods, and there is room for {most_groups} groups"
    beside = of_set and milli.get("most_groups_count", 0) >= milli.get("groups_count", 1)
    takes += ". That is without its other pods." if beside else "."
    if code is ReasonCode.EXCEEDS_CAPACITY:
        return f"{each[0].upper()}{each[1:]}; even empty, the largest of {{domains}} takes {takes}"
    return (
        f"{{asked}} {{flavor}} asked and {{free}} free, but {each}: of {{domains}}, the one with"
        f" most room takes {takes}"
    )


class _Words(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "the flavor" if name == "flavor" else "0"


def _tell_binding(words: _Words, milli: dict[str, int]) -> None:
    """What one pod asks, and the most of it on one node, of what binds only."""

    def told(cores: str, memory: str) -> str:
        gib = f"{milli.get(memory, 0) / 1024:g} GiB"
        of = {BINDS_CORES: f"{words[cores]} cores", BINDS_MEMORY: gib}
        return of.get(words["binds"], f"{words[cores]} cores and {gib}")

    count = milli.get("pods_count", 0)
    asked = told("pod_cpu", "pod_memory_mib")
    words["pods"] = f"1 pod of {asked}" if count == 1 else f"{count} pods of up to {asked}"
    words["largest"] = told("largest_cpu", "largest_memory_mib")


def _tell_gate(words: _Words, milli: dict[str, int]) -> str:
    """What is said of it besides: how long it may take, and how many others there are."""
    words["since"] = moment(milli.get("since_at", 0))
    words["others"] = str(milli.get("gates_count", 1) - 1)
    more = ""
    if "deadline_at" in milli:
        words["deadline"] = moment(milli["deadline_at"])
        more += " Not opened by {deadline}, it is cancelled."
    if words["others"] != "0":
        more += " Other gates of it that are not open: {others}."
    return more


def listed(names: Iterable[str]) -> str:
    """As a number of a reason has several names: in their order."""
    return ", ".join(names)


def in_units(milli: int) -> str:
    """Thousandths as a plain number: 1000 is "1", 250 is "0.25"."""
    sign, milli = ("-", -milli) if milli < 0 else ("", milli)
    whole, part = divmod(milli, 1000)
    return f"{sign}{whole}.{part:03d}".rstrip("0").rstrip(".")
