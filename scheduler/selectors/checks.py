"""What the newest check of the promises says: whether anything new may start."""

from clusters.services import restoring
from scheduler.models import InvariantCheck


def newest() -> InvariantCheck | None:
    """The one that began last, None before the first. One query."""
    return InvariantCheck.objects.order_by("-at", "-id").first()


def admission_stopped() -> bool:
    """Whether anything new may not start. Two queries."""
    return stopped_by(newest())


def stopped_by(found: InvariantCheck | None) -> bool:
    """Whether that check found what nobody has accepted, or a cluster is to be listed before
    anything may start, as the database was put back. One query."""
    return (found is not None and found.stops) or restoring.any_unread()
