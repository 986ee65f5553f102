"""Why pods fail, in classes, and which failures are tried again. Pure.

What must not live here: what follows for a workload's state (`loop/observing/progress`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    """The worst first: of the pods of a gang, that one is the gang's."""

    OUT_OF_MEMORY = "out-of-memory"  # it used more memory than it asked for
    RUN_TIME_LIMIT = "run-time-limit"
    IDLE = "idle"  # it left its devices unused for too long, and was freed (ADR 0037)
    START_ERROR = "start-error"  # its image can't be pulled, or its container not be started
    EXIT_CODE = "exit-code"  # its program ended with another exit code than 0
    REFUSED = "refused"  # the cluster did not take its pods
    NODE_LOST = "node-lost"
    EVICTED = "evicted"  # the cluster, or somebody there, took its pods away
    CLUSTER_LOST = "cluster-lost"  # nobody knows what became of it: it was started elsewhere


RETRIABLE = tuple(each for each in FailureClass if each is not FailureClass.CLUSTER_LOST)
"""Of which a workload says whether they are tried again. Of a lost cluster it says when, and that
counts as no failed try (ADR 0085)."""

REQUEUE_S = 600, 7 * 24 * 3600
"""For how long its cluster has to be silent, at least and at most, before work starts elsewhere:
never before the cluster counts as lost."""

OWN = frozenset(
    {
        FailureClass.OUT_OF_MEMORY,
        FailureClass.RUN_TIME_LIMIT,
        FailureClass.IDLE,
        FailureClass.START_ERROR,
        FailureClass.EXIT_CODE,
    }
)
"""The work's doing, or its submitter's, and not the cluster's."""

DEVICE_TAINTED = "DeletionByDeviceTaintManager"
"""Kubernetes' word for pods that it ends as a driver taints their device with NoExecute."""

# Ours, where the cluster says nothing.
DELETED = "Deleted"  # it ended of its deletion, whoever asked for that: us, or who drains its node
GONE = "PodGone"  # it is not there any more, and nobody saw how it ended
DEVICE_LOST = "DeviceLost"  # a device of it was sick or gone by then; which comes after it
NEVER_STARTED = "NeverStarted"

_CLASSES: Mapping[str, FailureClass] = {
    reason: failure
    for failure, reasons in {
        FailureClass.OUT_OF_MEMORY: ("OOMKilled",),
        FailureClass.RUN_TIME_LIMIT: ("DeadlineExceeded",),
        FailureClass.START_ERROR: (
            "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
            "ImageInspectError", "CreateContainerConfigError", "CreateContainerError",
            "RunContainerError", "StartError", "ContainerCannotRun",
        ),
        # Of these a kubelet tells that did not admit a pod; the class of OutOf… is in `classify`.
        FailureClass.REFUSED: ("UnexpectedAdmissionError", "NodeAffinity", NEVER_STARTED),
        FailureClass.NODE_LOST: (
            "NodeLost", "NodeShutdown", "Terminated", "Shutdown", "ContainerStatusUnknown",
            "DeletionByPodGC", "DeletionByTaintManager", DEVICE_TAINTED, DEVICE_LOST,
        ),
        FailureClass.EVICTED: (
            "Evicted", "Preempting", "PreemptionByScheduler", "EvictionByEvictionAPI",
            "TerminationByKubelet", DELETED, GONE,
        ),
    }.items()
    for reason in reasons
}  # fmt: skip

_GONE_WITH_NODE = {DELETED, GONE, "EvictionByEvictionAPI"}
"""What is told of pods of a node that is drained to be taken away, or was."""

LOST = frozenset(
    word
    for word, failure in _CLASSES.items()
    if failure in {FailureClass.NODE_LOST, FailureClass.EVICTED}
)
"""The words of which a gang that has enough without the pod takes no harm."""


def classify(reason: str, *, node_down: bool = False) -> FailureClass:
    """Of one pod that failed, by the cluster's word for it (`PodReport.reason`) or ours; whether
    its node is gone, not ready or about to go tells why a pod is gone. What is not known is the
    work's own."""
    word = reason.partition(":")[0]
    if node_down and word in _GONE_WITH_NODE:
        return FailureClass.NODE_LOST
    if word.startswith("OutOf"):  # OutOfcpu, OutOfnvidia.com/gpu
        return FailureClass.REFUSED
    return _CLASSES.get(word, FailureClass.EXIT_CODE)


def may_be_its_device(reason: str) -> bool:
    """Whether a pod that failed so may have failed of a device, where one of it is sick or gone:
    its program ended by itself, or somebody took it away."""
    taken = reason.partition(":")[0] in {*_GONE_WITH_NODE, DEVICE_TAINTED}
    return taken or classify(reason) is FailureClass.EXIT_CODE


def worst(failures: Iterable[FailureClass]) -> FailureClass:
    """Of one at least. What was deleted beside the one that failed tells nothing of why."""
    return min(failures, key=list(FailureClass).index)


WORDS: Mapping[FailureClass, str] = {
    FailureClass.OUT_OF_MEMORY: "out of memory",
    FailureClass.RUN_TIME_LIMIT: "over its run-time limit",
    FailureClass.IDLE: "freed: idle",
    FailureClass.START_ERROR: "it could not start",
    FailureClass.EXIT_CODE: "its work failed",
    FailureClass.REFUSED: "the cluster did not take it",
    FailureClass.NODE_LOST: "its node was lost",
    FailureClass.EVICTED: "its pods were taken away",
    FailureClass.CLUSTER_LOST: "its cluster was lost",
}


def describe(failure: FailureClass, *, reasons: Sequence[str], exit_codes: Sequence[int]) -> str:
    """In words, with what the cluster said; `reasons` are those of this class."""
    what, told = WORDS[failure], [reason for reason in reasons if reason and reason != "Error"]
    lost = f"{DEVICE_LOST}: "
    if told and all(reason.startswith(lost) for reason in told):
        what, told = "its device was lost", [reason.removeprefix(lost) for reason in told]
    if exit_codes and failure in OWN:
        told.append(f"exit code {', '.join(map(str, exit_codes))}")
    return f"{what}: {'; '.join(told)}" if told else what


NODE_LOSSES = 20
"""How often work that lost its node is tried again: a budget of its own, as the work has no part
in it."""
MOST_RETRIES, MOST_EXIT_CODES = 100, 32


@dataclass(frozen=True, slots=True)
class Retries:
    """What is tried again: what failed in one of the classes `on`, or with only `exit_codes`;
    `limit` times in all, and NODE_LOSSES times more for lost nodes. What is tried again for its
    exit code is so too where its node or device was lost by then."""

    limit: int = 4
    on: tuple[FailureClass, ...] = (
        FailureClass.REFUSED,
        FailureClass.NODE_LOST,
        FailureClass.EVICTED,
    )
    exit_codes: tuple[int, ...] = ()

    def refusal(
        self,
        failure: FailureClass,
        *,
        exit_codes: Sequence[int],
        failures: int,
        node_losses: int,
    ) -> str:
        """Why it is not tried again, "" when it is. `failures` and `node_losses` are the tries
        that failed before."""
        exits = FailureClass.EXIT_CODE in self.on or set(exit_codes) <= set(self.exit_codes)
        by_code = failure in {FailureClass.EXIT_CODE, FailureClass.NODE_LOST} and exit_codes
        if failure not in self.on and not (by_code and exits):
            return f"not tried again: its retries do not include {failure}"
        lost = failure is FailureClass.NODE_LOST
        done, most = (node_losses, NODE_LOSSES) if lost else (failures, self.limit)
        if done < most:
            return ""
        return f"given up after {most + 1} {'tries' if most else 'try'}"


RETRIES = Retries()
"""Unless a workload says otherwise."""
