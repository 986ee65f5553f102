"""What the newest check of the promises says: whether anything new may start."""

from scheduler.models import InvariantCheck


def newest() -> InvariantCheck | None:
    """The one that began last, None before the first. One query."""
    return InvariantCheck.objects.order_by("-at", "-id").first()


def admission_stopped() -> bool:
    """Whether it found what nobody has accepted. One query."""
    found = newest()
    return found is not None and found.stops
