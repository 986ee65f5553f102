"""What each code of a reason means, for who reads the API's description; what one workload waits
for is told by `core.reasons.describe`, with its numbers."""

from collections.abc import Mapping

from scheduler.core.reasons import ReasonCode

MEANINGS: Mapping[ReasonCode, str] = {
    ReasonCode.NEVER_ADMISSIBLE: "It asks for more than its quota and loans could ever permit.",
    ReasonCode.NO_MATCHING_FLAVOR: "No cluster that it accepts has a flavor that it accepts.",
    ReasonCode.EXCEEDS_CAPACITY: "It is larger than any node, or than its clusters.",
    ReasonCode.QUOTA_USED: "What its project may hold, or is guaranteed, is in use.",
    ReasonCode.COHORT_USED: "Nobody has anything left to lend to its project.",
    ReasonCode.NO_FIT: "Enough is free in sum, but not where its pods would fit together.",
    ReasonCode.NO_FREE_CAPACITY: "The clusters that it accepts are full.",
    ReasonCode.WAITING_FOR_PREEMPTION: "Others are being evicted for it.",
    ReasonCode.BEHIND: "Others of its queue come first.",
    ReasonCode.CLUSTER_UNAVAILABLE: "It would fit where nothing new is taken now.",
    ReasonCode.WAITING_FOR_NODE: "It would start on nodes that its clusters can still make.",
    ReasonCode.HARDWARE_HELD: "It would fit in a cluster or pool that is held or drained.",
    ReasonCode.BACKOFF: "A try of it failed, and it is tried again later.",
    ReasonCode.ADMISSION_STOPPED: "A promise is broken, or a cluster unread since a restore.",
    ReasonCode.QUEUE_HELD: "Its project, or a tenant above it, is held or drained, or nobody"
    " confirmed the project's quota in its review.",
    ReasonCode.RESERVED: "It might still run when what it would hold is reserved for others.",
    ReasonCode.ROOM_KEPT: "It has waited so long that what it needs is kept for it.",
    ReasonCode.KEPT_FOR_OTHERS: "What it would take is kept for who comes first and waits long.",
    ReasonCode.QUOTA_KEPT: "What is left of its quota is kept for older work of its project.",
    ReasonCode.CAP_REACHED: "As much of its project, or of its submitter, runs as may at once.",
    ReasonCode.BUDGET_USED: "A budget over it is used up, or does not cover it.",
    ReasonCode.RUN_TIME_UNKNOWN: "A budget over it covers only work with a run-time limit.",
    ReasonCode.ARRAY_FULL: "As many of its array run as may at once.",
    ReasonCode.GATE: "Somebody has to open a gate of it first.",
    ReasonCode.DEPENDENCY: "What it was told to wait for has not ended.",
    ReasonCode.STRAYS: "Pods of it run that the database, put back from a backup, does not know.",
    ReasonCode.GATHERING: "Not all its pods, which are made in its cluster, are there.",
    ReasonCode.ISOLATION: "Its flavors isolate neighbours less than it, or its project, accepts.",
    ReasonCode.INVALID: "What is stored of it contradicts itself.",
}
CODES = [code.value for code in MEANINGS]
DOCUMENTED = "\n".join(f"* `{code}`: {meaning}" for code, meaning in MEANINGS.items())
