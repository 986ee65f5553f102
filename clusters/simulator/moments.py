"""The simulated cluster's time: the accelerated clock that all of Berth's processes share."""

from datetime import UTC, datetime

from controlplane.kernel import clock


def rfc3339(at: datetime) -> str:
    """With microseconds, finer than a real API server's: what started at t and slept n ended at
    exactly t + n."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(text)


def now() -> datetime:
    return clock.now()


def real_seconds(simulated: float) -> float:
    """How long that takes on the wall."""
    return simulated / clock.speed()
