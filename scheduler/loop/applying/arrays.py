"""The caps of arrays, asked again on the rows as they are when work is admitted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from scheduler.core.plan import Admit
from scheduler.core.units import WorkloadId
from scheduler.models import Attempt, WorkloadArray
from scheduler.selectors.waiting import Waiting


def within(batch: Sequence[Admit], waiting: Mapping[WorkloadId, Waiting]) -> list[Admit]:
    """Those that bring no array beyond its cap, in order, each beside those before it. Their
    arrays are held until the transaction ends, so that nobody else starts any of theirs."""
    named = {array for admit in batch if (array := waiting[admit.workload].array) is not None}
    if not named:
        return list(batch)
    left = _left(named)
    kept = []
    for admit in batch:
        array = waiting[admit.workload].array
        if array is not None and array in left:
            if left[array] <= 0:
                continue
            left[array] -= 1
        kept.append(admit)
    return kept


def _left(named: set[UUID]) -> Counter[UUID]:
    """How many more of each may hold, of those that have a cap."""
    capped = WorkloadArray.objects.filter(id__in=named, most_at_once__isnull=False)
    locked = capped.order_by("id").select_for_update(no_key=True)
    left = Counter(dict(locked.values_list("id", "most_at_once")))
    holding = Attempt.objects.filter(workload__array_id__in=list(left), ended_at__isnull=True)
    left.subtract(holding.values_list("workload__array_id", flat=True))
    return left
