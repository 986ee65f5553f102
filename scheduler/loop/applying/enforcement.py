"""Quotas that were to be enforced and are kept by now: nothing of them is to be taken back later.

Who is taken back is in the plan (`core/stopping/enforce`), and goes as whoever is preempted does.
"""

from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from scheduler.core.snapshot import Snapshot
from scheduler.core.stopping.enforce import kept
from scheduler.loop.lease import Lease, fence
from tenants.services import enforcement as services
from tenants.services.quotas import Amounts


def settle(*, lease: Lease, snapshot: Snapshot, at: datetime) -> int:
    """Those that the snapshot shows as kept; how many. Raises lease.Fenced."""
    found = kept(snapshot)
    if not found:
        return 0
    with transaction.atomic():
        fence(lease)
        return sum(
            services.settle(
                owner_id=UUID(owner),
                flavor_id=UUID(quota.flavor),
                seen=Amounts(
                    nominal_milli=quota.nominal_milli,
                    borrowing_limit_milli=quota.borrowing_limit_milli,
                    enforce_at=datetime.fromtimestamp(quota.enforce_at or 0, UTC),
                ),
                at=at,
            )
            for owner, quota in found
        )
