"""Fair share: how far a project, and its tenant, is over what it is guaranteed.

Dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011), of what is borrowed only,
as in Kueue's fair sharing (KEP-1714): the largest, over flavors, of what is used beyond nominal as
a part of the fleet's nominal, divided by the weight. Whoever has less comes first.
"""

from collections.abc import Iterable

from scheduler.core.quota import Book
from scheduler.core.snapshot import QueueView
from scheduler.core.units import FlavorId, ProjectId, TenantId

SCALE = 10**12
"""A share is an int: SCALE is the whole fleet's nominal of a flavor at weight 1."""

_WITHOUT_WEIGHT = 10**30


class Shares:
    """Shares of projects and tenants, kept up with `charge`.

    A tenant's guarantee, use and weight are the sums of its projects': inside a tenant one project
    may use what another leaves, before either counts as borrowing from other tenants.
    """

    __slots__ = ("_book", "_projects", "_tenant", "_tenants")

    def __init__(self, *, queues: Iterable[QueueView], book: Book) -> None:
        """Starts from what `book` has in use."""
        self._book = book
        self._projects: dict[ProjectId, _Over] = {}
        self._tenants: dict[TenantId, _Over] = {}
        self._tenant: dict[ProjectId, TenantId] = {}
        for queue in queues:
            self._tenant[queue.project] = queue.tenant
            self._tenants.setdefault(queue.tenant, _Over()).weight += queue.weight
            self._projects.setdefault(queue.project, _Over()).weight += queue.weight
            for quota in queue.quotas:
                self.charge(
                    project=queue.project, flavor=quota.flavor, amount_milli=-quota.nominal_milli
                )
        for (project, flavor), amount in book.usage().items():
            self.charge(project=project, flavor=flavor, amount_milli=amount)

    def of(self, *, project: ProjectId) -> tuple[int, int]:
        """(tenant's share, project's share); 0 is within the guarantee, or an unknown project."""
        tenant = self._tenant.get(project)
        if tenant is None:
            return 0, 0
        return self._tenants[tenant].dominant(), self._projects[project].dominant()

    def charge(self, *, project: ProjectId, flavor: FlavorId, amount_milli: int) -> None:
        """The project's use has grown by that much, or shrunk."""
        tenant = self._tenant.get(project)
        if tenant is not None:
            fleet = self._book.fleet_nominal(flavor=flavor)
            self._projects[project].add(flavor, amount_milli, fleet)
            self._tenants[tenant].add(flavor, amount_milli, fleet)


class _Over:
    """Use beyond nominal per flavor (negative below it), and the share that it makes."""

    __slots__ = ("_over", "_shares", "weight")

    def __init__(self) -> None:
        self.weight = 0
        self._over: dict[FlavorId, int] = {}
        self._shares: dict[FlavorId, int] = {}

    def add(self, flavor: FlavorId, amount_milli: int, fleet_milli: int) -> None:
        over = self._over[flavor] = self._over.get(flavor, 0) + amount_milli
        if over > 0:
            self._shares[flavor] = over * SCALE // (fleet_milli or 1)
        else:
            self._shares.pop(flavor, None)

    def dominant(self) -> int:
        if not self._shares:
            return 0
        if self.weight <= 0:
            return _WITHOUT_WEIGHT
        return max(self._shares.values()) // self.weight
