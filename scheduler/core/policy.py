"""What an installation may decide about planning. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """The knobs of one plan.

    `admission` off: nothing starts, nor is anything taken back; what would start is held for that.
    `preemption` off: nothing is ever taken back. `max_admits` bounds one cycle's admissions, so
    that its transaction stays short. `max_preemptors` bounds the workloads for which one cycle
    evicts others, and after `max_victims` it evicts for no further one. One may need more than
    that: a large gang would else wait for ever.

    Who has waited for `guard_s` and fits nowhere has room kept for it (see `backfill`), and quota
    in its project (see `quota_guard`); None keeps none. `most_kept` is for how many at once room
    is: 1 is EASY backfill, more is conservative.

    `consolidation_budget_milli_s` is how much work one plan may lose by moving work to make room
    (see `moves`), in thousandths of devices x seconds; 0 moves none.
    """

    admission: bool = True
    preemption: bool = True
    max_victims: int = 256
    max_admits: int = 250
    max_preemptors: int = 32
    guard_s: int | None = None
    most_kept: int = 1
    consolidation_budget_milli_s: int = 0
