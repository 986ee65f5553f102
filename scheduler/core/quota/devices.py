"""What amounts of flavors count in devices: slices and shares as parts of one."""

from collections.abc import Iterable

from scheduler.core.quota.equivalents import DEVICE_MILLI, each_counts
from scheduler.core.quota.portions import as_given
from scheduler.core.quota.quota import amount_milli
from scheduler.core.snapshot import FlavorView, PendingView
from scheduler.core.units import ONE_MILLI, FlavorId


class Devices:
    """Of these flavors; cores count nothing."""

    def __init__(self, flavors: Iterable[FlavorView]) -> None:
        self._flavors = {flavor.id: flavor for flavor in flavors}
        self._counts = each_counts(self._flavors.values())

    def of(self, amounts: Iterable[tuple[FlavorId, int]]) -> int:
        """In thousandths of a seventh of a device; amounts are in thousandths of their flavors."""
        counts = self._counts
        return sum(milli * counts.get(flavor, 0) // ONE_MILLI for flavor, milli in amounts)

    def least(self, pending: PendingView) -> int:
        """Of its least start with the flavors that count least."""
        found = 0
        for pod_set in pending.pod_sets:
            if pod_set.gpu_count:
                known = (self._flavors[f] for f in pod_set.flavors if f in self._flavors)
                each = (
                    amount_milli(pod_set=as_given(pod_set=pod_set, flavor=f)) * self._counts[f.id]
                    for f in known
                )
                unknown = amount_milli(pod_set=pod_set) * DEVICE_MILLI
                found += pod_set.min_count * min(each, default=unknown) // ONE_MILLI
        return found

    def narrow(
        self, *, needs: Iterable[tuple[FlavorId, int]], most: int, spare: dict[FlavorId, int]
    ) -> None:
        """Leave in `spare` no more than counts `most` in all.

        The least start, `needs`, stays; what is left beyond goes to the flavors in turn.
        """
        needs = [(flavor, asked) for flavor, asked in needs if self._counts.get(flavor)]
        more = max(0, most - self.of(needs))
        for flavor, asked in needs:
            spare[flavor] = min(spare[flavor], asked + more * ONE_MILLI // self._counts[flavor])
            more -= self.of([(flavor, spare[flavor] - asked)])
