"""What an installation may decide about planning. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """The knobs of one plan.

    `preemption` off: nothing is ever taken back. `max_victims` bounds the workloads evicted for
    one preemptor. `max_admits` bounds one cycle's admissions, so that its transaction stays short.
    `max_preemptors` bounds the workloads for which one cycle evicts others.
    """

    preemption: bool = True
    max_victims: int = 16
    max_admits: int = 250
    max_preemptors: int = 32
