"""Why a workload is not placed, and why one is preempted: closed enums, with numbers, as values."""

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
    CLUSTER_UNAVAILABLE = "cluster-unavailable"  # every accepted cluster is lost, degraded or draining
    BACKOFF = "backoff"  # a failed start is retried later


class PreemptRule(StrEnum):
    PRIORITY = "priority"  # lower priority in the same project
    RECLAIM = "reclaim"  # its project borrows what the preemptor's project is guaranteed


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the numbers that failed, as (name, value) pairs sorted by name.

    Amounts are in thousandths of a flavor (`…_milli`), counts in pods (`…_count`).
    """

    code: ReasonCode
    numbers: tuple[tuple[str, int | str], ...] = ()


def describe(reason: Reason) -> str:
    """One sentence in English with the numbers; amounts in devices, slices or cores."""
    n = _Numbers(reason.numbers)
    match reason.code:
        case ReasonCode.NEVER_ADMISSIBLE:
            return _never(n)
        case ReasonCode.NO_MATCHING_FLAVOR:
            if n.has("flavor"):
                return f"No accepted cluster has {n.flavor}."
            return "No accepted flavor exists on an accepted cluster."
        case ReasonCode.EXCEEDS_CAPACITY:
            return (
                f"Larger than the hardware: {n.pods} asked, {n.amount('asked')} in all; even empty,"
                f" one cluster has {n.amount('free')} and one node {n.amount('largest_free')}."
            )
        case ReasonCode.QUOTA_USED:
            return (
                f"{n.amount('asked')} asked and {n.amount('used')} in use; the project may hold at"
                f" most {n.most} {n.flavor} ({n.limits})."
            )
        case ReasonCode.COHORT_USED:
            return (
                f"{n.amount('asked')} {n.flavor} asked and {n.amount('available')} to be had: the"
                f" project uses {n.amount('used')} of {n.amount('nominal')} nominal, and the others"
                " leave no more to borrow."
            )
        case ReasonCode.NO_FIT:
            return (
                f"{n.amount('asked')} {n.flavor} asked and {n.amount('free')} free, but not where"
                f" it fits: {n.pods} asked; the most free on one node is"
                f" {n.amount('largest_free')}."
            )
        case ReasonCode.NO_FREE_CAPACITY:
            return f"{n.amount('asked')} {n.flavor} asked, {n.amount('free')} free in one cluster."
        case ReasonCode.WAITING_FOR_PREEMPTION:
            return f"Waits for {n.amount('coming')} {n.flavor}: {n.waiting}."
        case ReasonCode.BEHIND:
            return f"{n.count('admitted')} other workloads start first; it is looked at again then."
        case ReasonCode.CLUSTER_UNAVAILABLE:
            return f"{n.count('clusters')} accepted clusters are lost, degraded or draining."
        case ReasonCode.BACKOFF:
            return f"The last start failed; it is tried again in {n.seconds('retry_in')} s."


class _Numbers:
    """A reason's numbers as words. What is missing reads as 0."""

    def __init__(self, numbers: tuple[tuple[str, int | str], ...]) -> None:
        self._of = dict(numbers)
        self.flavor = str(self._of.get("flavor", "of the flavor"))

    def has(self, name: str) -> bool:
        return name in self._of

    def milli(self, name: str) -> int:
        return int(self._of.get(f"{name}_milli", 0))

    def amount(self, name: str) -> str:
        return in_units(self.milli(name))

    def count(self, name: str) -> int:
        return int(self._of.get(f"{name}_count", 0))

    def seconds(self, name: str) -> int:
        return int(self._of.get(f"{name}_s", 0))

    @property
    def most(self) -> str:
        return in_units(self.milli("nominal") + self.milli("borrowable"))

    @property
    def limits(self) -> str:
        return f"{self.amount('nominal')} nominal + {self.amount('borrowable')} borrowed"

    @property
    def pods(self) -> str:
        count = self.count("pods")
        memory_gib = int(self._of.get("pod_memory_mib", 0)) / 1024
        return (
            f"{count} {'pod' if count == 1 else 'pods'} of up to {self.amount('pod')}"
            f" {self.flavor}, {self.amount('pod_cpu')} cores and {memory_gib:g} GiB"
        )

    @property
    def waiting(self) -> str:
        count = self.count("victims")
        if not count:
            return "work that is ending gives them back"
        return f"{count} {'workload is' if count == 1 else 'workloads are'} being evicted for it"


def _never(n: _Numbers) -> str:
    if not n.milli("nominal") + n.milli("borrowable"):
        return f"{n.amount('asked')} asked; the project has no quota of {n.flavor}."
    return (
        f"{n.amount('asked')} asked; the project may hold at most {n.most} {n.flavor} ({n.limits})."
    )


def in_units(milli: int) -> str:
    """Thousandths as a plain number: 1000 is "1", 250 is "0.25"."""
    sign, milli = ("-", -milli) if milli < 0 else ("", milli)
    whole, part = divmod(milli, 1000)
    return f"{sign}{whole}.{part:03d}".rstrip("0").rstrip(".")
