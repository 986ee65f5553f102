"""Why a workload is not placed, and why one is preempted: closed enums with numbers, as values."""

from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """Stable codes; each is documented in the API and has one sentence in `describe`."""

    NEVER_ADMISSIBLE = "never-admissible"  # asks more than nominal + borrowing could ever allow
    NO_MATCHING_FLAVOR = "no-matching-flavor"  # no accepted flavor exists on an accepted cluster
    EXCEEDS_CAPACITY = "exceeds-capacity"  # larger than any node, or than the accepted clusters
    QUOTA_USED = "quota-used"  # the project's own nominal + borrowing is in use
    COHORT_USED = "cohort-used"  # nothing left to borrow
    NO_FIT = "no-fit"  # free in sum, but no node or legal span (or no gang of nodes) holds it now
    NO_FREE_CAPACITY = "no-free-capacity"  # the accepted clusters are full
    WAITING_FOR_PREEMPTION = "waiting-for-preemption"  # victims are being evicted for it
    BEHIND = "behind"  # the same queue's head comes first
    CLUSTER_UNAVAILABLE = "cluster-unavailable"  # accepted clusters lost, degraded, draining
    BACKOFF = "backoff"  # a failed start is retried later
    ADMISSION_STOPPED = "admission-stopped"  # it would start, were a promise not broken


BINDS_CORES = "cores"
BINDS_MEMORY = "memory"
BINDS_BOTH = "cores and memory"


class PreemptRule(StrEnum):
    PRIORITY = "priority"  # lower priority in the same project
    RECLAIM = "reclaim"  # its project borrows what the preemptor's project is guaranteed


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the numbers that failed, as (name, value) pairs sorted by name.

    Amounts are in thousandths of a flavor (`…_milli`), counts in pods (`…_count`). When devices
    would do and something else does not, `binds` says what: BINDS_CORES, BINDS_MEMORY or
    BINDS_BOTH.
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
        "Accepted clusters that are lost, degraded or draining: {clusters}; no other is accepted."
    ),
    ReasonCode.BACKOFF: "The last start failed; it is tried again in {retry_in} s.",
    ReasonCode.ADMISSION_STOPPED: (
        "It fits, but nothing new starts while an operator looks into a broken promise."
    ),
}
_NO_QUOTA = "{asked} asked; the project has no quota of {flavor}."
_NO_FLAVOR = "No accepted flavor exists on an accepted cluster."
_OUT = (
    "{asked} {flavor} asked, {free} free in one cluster that takes new work. It would fit where"
    " none is taken now: {outages}."
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
        plain, _, unit = name.rpartition("_")
        words[plain or name] = in_units(int(value)) if unit == "milli" else str(value)
    most = milli.get("nominal_milli", 0) + milli.get("borrowable_milli", 0)
    words["most"] = in_units(most)
    words["shape"] = _shape(milli, words["pod"], words["pod_cpu"])
    sentence = _SENTENCES[reason.code]
    if "binds" in words:
        sentence = _BINDS.get(reason.code, sentence)
        _tell_binding(words, milli)
    if reason.code is ReasonCode.CLUSTER_UNAVAILABLE and "flavor" in words:
        sentence = _OUT
        words["outages"] = _outages(milli)
    if reason.code is ReasonCode.NEVER_ADMISSIBLE and not most:
        sentence = _NO_QUOTA
    if reason.code is ReasonCode.NO_MATCHING_FLAVOR and "flavor" not in words:
        sentence = _NO_FLAVOR
    return sentence.format_map(words)


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


def _outages(milli: dict[str, int]) -> str:
    """In words: clusters are lost, degraded or draining, nodes not ready or cordoned."""
    found = []
    for one, many in (("cluster", "clusters"), ("node", "nodes")):
        count = milli.get(f"{many}_count", 0)
        if count:
            found.append(f"{count} {one if count == 1 else many}")
    kinds = "lost, degraded or draining" if milli.get("clusters_count") else "not ready"
    return f"{' and '.join(found)} {kinds}"


def _shape(milli: dict[str, int], pod: str, cores: str) -> str:
    count, memory_gib = milli.get("pods_count", 0), milli.get("pod_memory_mib", 0) / 1024
    pods = "1 pod of" if count == 1 else f"{count} pods of up to"
    return f"{pods} {pod} with {cores} cores and {memory_gib:g} GiB"


def in_units(milli: int) -> str:
    """Thousandths as a plain number: 1000 is "1", 250 is "0.25"."""
    sign, milli = ("-", -milli) if milli < 0 else ("", milli)
    whole, part = divmod(milli, 1000)
    return f"{sign}{whole}.{part:03d}".rstrip("0").rstrip(".")
