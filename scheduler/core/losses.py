"""How much work is lost when it stops: one formula, for the choice of victims and for what is
written down afterwards. Pure."""

from scheduler.core.equivalents import PARTS
from scheduler.core.reasons import in_units


def lost_milli_s(
    *, sevenths_milli: int, started_at: int | None, checkpointed_at: int | None, at: int
) -> int:
    """Thousandths of devices x seconds run until `at` since the last checkpoint, or since the
    start if that is later; rounded up. 0 for what had not begun. `sevenths_milli` is what it held,
    in thousandths of a seventh of a device."""
    since = at if started_at is None else started_at
    if checkpointed_at is not None:
        since = max(since, checkpointed_at)
    return -(-sevenths_milli * max(0, at - since) // PARTS)


def gpu_hours(lost_milli_s: int) -> str:
    """Rounded up to thousandths: "0.8"."""
    return in_units(-(-lost_milli_s // 3600))
