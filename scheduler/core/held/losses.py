"""How much work is lost when it stops: one formula, for the choice of victims and for what is
written down afterwards. Pure."""

from scheduler.core.quota.equivalents import PARTS
from scheduler.core.reasons import in_units


def lost_milli_s(
    *, sevenths_milli: int, started_at: int | None, checkpointed_at: int | None, at: int
) -> int:
    """Thousandths of devices x seconds run until `at` since the last checkpoint, or since the
    start if that is later; rounded up. 0 for what had not begun. `sevenths_milli` is what it held,
    in thousandths of a seventh of a device."""
    since = lost_since(started_at=started_at, checkpointed_at=checkpointed_at)
    return 0 if since is None else -(-sevenths_milli * max(0, at - since) // PARTS)


def lost_since(*, started_at: int | None, checkpointed_at: int | None) -> int | None:
    """Since when what it did is lost; None for what has not begun."""
    if started_at is None or checkpointed_at is None:
        return started_at
    return max(started_at, checkpointed_at)


def gpu_hours(lost_milli_s: int) -> str:
    """Rounded up to thousandths: "0.8"."""
    return in_units(-(-lost_milli_s // 3600))
