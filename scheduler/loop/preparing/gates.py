"""Gates that nobody decided by their deadline: they count as refused, and who waited is
cancelled."""

from datetime import datetime

from django.db import transaction

from controlplane.kernel import hints
from scheduler.models import Gate, GateState
from scheduler.selectors import gates as selectors
from scheduler.services import gates

ACTOR = "system:scheduler"
NOTE = "nobody opened it by its deadline"


def expire(*, at: datetime) -> int:
    """Refuse those of work that waits; of how many the deadline has passed."""
    with transaction.atomic():
        late = selectors.waiting().filter(deadline_at__lte=at)
        found = list(late.order_by("id").select_for_update(of=("self",)))
        Gate.objects.filter(id__in=[gate.id for gate in found]).update(
            state=GateState.REFUSED, note=NOTE, decided_at=at
        )
        for gate in found:
            gates.end(gate, f"refused: {NOTE}", actor=ACTOR, actor_name="scheduler", at=at)
        if found:
            hints.hint(hints.CYCLE)
    return len(found)
