"""For whom quota is kept in its own project, and until when (ADR 0020).

Who has waited for `Policy.guard_s` and does not start has what it asks for kept beside what its
project starts later, where that is in the project's own hands: the quota, or what is left to
borrow, would do if only none of its project's own work held any. So small work of a project does
not overtake its large work for ever. What others hold is none of it: then the project's own work
goes on.

It is kept whether its room is there or not, as both seldom come back at once; not where no cluster
that is up has as many devices. What ends by its own limit before the quota is back, by the limits
of what its project runs, goes ahead.
"""

from collections import Counter
from contextlib import ExitStack

from scheduler.core.admission import Admission
from scheduler.core.policy import Policy
from scheduler.core.request import Option, Request
from scheduler.core.snapshot import DeviceMode, FlavorKind, FlavorView, PendingView, Snapshot
from scheduler.core.units import ONE_MILLI, ClusterId, FlavorId

NEVER = -(1 << 60)
UNCOUNTED = 1 << 60


class Devices:
    """How many thousandths of flavors of whole devices are in use or free now, in clusters that
    are up; asked of few plans, and then of few flavors."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._clusters = {cluster.id: cluster for cluster in snapshot.clusters}
        self._known: dict[ClusterId, Counter[str]] = {}

    def there(self, *, cluster: ClusterId, flavor: FlavorView) -> int:
        """Of slices, shares and cores nobody counts: more than anybody asks for."""
        if flavor.kind is not FlavorKind.WHOLE:
            return UNCOUNTED
        if cluster not in self._known:
            self._known[cluster] = Counter(
                device.model
                for node in self._clusters[cluster].nodes
                if node.usable
                for device in node.devices
                if device.usable and device.mode is DeviceMode.WHOLE
            )
        return self._known[cluster][flavor.model] * ONE_MILLI


class QuotaGuard:
    """Keeps quota in the admission of one plan."""

    def __init__(self, *, snapshot: Snapshot, policy: Policy, admission: Admission) -> None:
        """`since`: for who was submitted by then; before all times for nobody."""
        self.since = NEVER if policy.guard_s is None else snapshot.at - policy.guard_s
        self.devices = Devices(snapshot)
        self._admission = admission

    def keep(self, *, pending: PendingView, request: Request) -> None:
        """It has waited long and did not start: keep for it what it needs with any option for
        which its project's quota would do without the project's own work, unless some of that is
        kept for one who stands before it."""
        admission, kept = self._admission, self._admission.kept
        if not admission.is_open(pending=pending, request=request):
            return
        amounts: dict[FlavorId, int] = {}
        for option in request.options:
            if (
                not any(kept.amount(pending, flavor) for flavor, _ in option.needs)
                and admission.caps.lacks(pending=pending, option=option) is None
                and self._is_there(request, option)
                and self._would_do(pending, option)
            ):
                for flavor, asked in option.needs:
                    if asked:
                        amounts[flavor] = max(asked, amounts.get(flavor, 0))
        if amounts:
            kept.keep(pending, amounts.items())

    def _is_there(self, request: Request, option: Option) -> bool:
        """Whether a cluster that is up has as many devices."""
        needs, draft = dict(option.needs), self._admission.draft
        return any(
            request.accepts(cluster)
            and all(
                needs[flavor.id] <= self.devices.there(cluster=cluster, flavor=flavor)
                for flavor in option.flavors
            )
            for cluster in draft.clusters
        )

    def _would_do(self, pending: PendingView, option: Option) -> bool:
        """Whether there were quota for it, were all of its project's own use gone."""
        admission, flavors = self._admission, [flavor for flavor, _ in option.needs]
        with ExitStack() as stack:
            for draft in admission.drafts:
                stack.enter_context(draft.book.without(project=pending.project, flavors=flavors))
            return admission.has_quota(pending=pending, option=option)
