"""What this installation has decided about planning."""

from django.conf import settings

from scheduler.core.policy import Policy
from scheduler.core.units import ONE_MILLI


def current() -> Policy:
    """For the cycles and for the estimates alike."""
    return Policy(
        guard_s=settings.BERTH_GUARD_S or None,
        most_kept=settings.BERTH_KEPT_FOR,
        consolidation_budget_milli_s=settings.BERTH_CONSOLIDATION_BUDGET_S * ONE_MILLI,
    )
