"""Projects that have less quota than there is: what a machine asks for, and how it opens."""

from hypothesis import strategies as st

from scheduler.core.policy import Policy
from tests.core.build import Quota, pods
from tests.core.reference.machine import Fleet, asked
from tests.core.reference.openings import ask, opening, own
from tests.core.reference.tried import Case

ASKS = asked(
    flavors=["h100", "h100", "h100", "cpu"],
    projects=["a", "a", "b"],
    priorities=[0, 0, 0, 1],
    limits_s=[300, 600, 900, 1200, 3600, None],
)
GUARDED = st.builds(Policy, guard_s=st.just(120), most_kept=st.sampled_from([1, 1, 2]))


@opening(Case.QUOTA_KEPT, Case.QUOTA_LEFT)
def queued(fleet: Fleet) -> None:
    """Of a quota of six devices one is in use for a while when all six are asked for; then others
    come, of which one ends in time."""
    fleet.world.policy = Policy(guard_s=120)
    own(fleet, a=6, b=6)
    fleet.world.quotas["a", "h100"] = Quota(6)
    ask(fleet, "a", pods(), limit_s=900)
    fleet.plan()
    ask(fleet, "a", pods(2, gpus=3))
    for _ in range(3):
        fleet.plan()
    ask(fleet, "a", pods())
    ask(fleet, "a", pods(), limit_s=300)
    for after_s in (60, 300, 400, 60):
        fleet.plan(after_s=after_s)
