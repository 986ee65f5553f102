"""Quota that promises more than there is: told to whoever sets it, and not refused, as hardware
may be on its way."""

from collections.abc import Collection, Sequence

from clusters.models import Flavor
from scheduler.core.quota.quota import Book
from scheduler.core.reasons import in_units
from scheduler.core.units import FlavorId, ProjectId
from scheduler.selectors import capacity, fleet
from tenants import ancestry
from tenants.models import Project, Tenant

MOST = 3
"""Projects below a tenant that are named."""


def warnings(*, flavor: Flavor, owner: Project | Tenant) -> tuple[str, ...]:
    """A sentence with its numbers for each promise that can't be kept; () when there is none.

    More of the flavor is guaranteed to all tenants and projects together than their clusters have,
    where a device that is cut on demand counts whole for each profile. Or the project, or one
    below the tenant, may borrow more than those beside it lend and the tenants above it let in.
    Seven queries, two more of a tenant.
    """
    return told(Book(cohorts=fleet.cohorts(), queues=fleet.queues()), flavor, owner)


def warnings_of_all(quotas: Collection[tuple[Flavor, Project]]) -> tuple[str, ...]:
    """The same of several quotas of projects, each sentence once."""
    if not quotas:
        return ()
    book = Book(cohorts=fleet.cohorts(), queues=fleet.queues())
    found = (told(book, flavor, project) for flavor, project in quotas)
    return tuple(dict.fromkeys(sentence for each in found for sentence in each))


def told(book: Book, flavor: Flavor, owner: Project | Tenant) -> tuple[str, ...]:
    """The same by the quotas of that book."""
    id = FlavorId(str(flavor.id))
    found = []
    guaranteed = book.fleet_nominal(flavor=id)
    there = capacity.there_milli(flavor=flavor)
    if guaranteed > there:
        found.append(
            f"{in_units(guaranteed)} {flavor.name} are guaranteed in the whole fleet, which has"
            f" {in_units(there)}: {in_units(guaranteed - there)} too many."
        )
    of = [owner] if isinstance(owner, Project) else _below(owner)
    beyond = [sentence for each in of if (sentence := _beyond(book, flavor, each))]
    found += beyond[:MOST]
    if len(beyond) > MOST:
        more = len(beyond) - MOST
        found.append(f"So it is with {more} more below {owner.name}.")
    return tuple(found)


def _below(tenant: Tenant) -> Sequence[Project]:
    tenants = ancestry.below(tenant.id, parents=ancestry.parents())
    return list(Project.objects.filter(tenant__in=tenants).order_by("name", "id"))


def _beyond(book: Book, flavor: Flavor, project: Project) -> str:
    """What its own limits permit and those around it do not; "" where they do."""
    id, of = FlavorId(str(flavor.id)), ProjectId(str(project.id))
    ceiling = book.ceiling(project=of, flavor=id)
    borrowing = book.borrowing_limit(project=of, flavor=id)
    if ceiling is None or borrowing is None:
        return ""
    most = book.nominal(project=of, flavor=id) + borrowing
    if most <= ceiling:
        return ""
    return (
        f"{project.name} may hold {in_units(most)} {flavor.name} by its own limits, and never more"
        f" than {in_units(ceiling)} by what others lend and the tenants above it permit."
    )
