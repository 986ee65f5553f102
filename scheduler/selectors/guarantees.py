"""Quota that promises more than there is: told to whoever sets it, and not refused, as hardware
may be on its way."""

from collections.abc import Collection

from clusters.models import Flavor
from scheduler.core.quota import Book
from scheduler.core.reasons import in_units
from scheduler.core.units import FlavorId, ProjectId
from scheduler.selectors import capacity, fleet
from tenants.models import Project


def warnings(*, flavor: Flavor, project: Project | None = None) -> tuple[str, ...]:
    """A sentence with its numbers for each promise that can't be kept; () when there is none.

    More of the flavor is guaranteed to all tenants and projects together than their clusters have,
    where a device that is cut on demand counts whole for each profile. Or `project` may borrow
    more than those beside it lend and the tenants above it let in. Seven queries.
    """
    return told(Book(cohorts=fleet.cohorts(), queues=fleet.queues()), flavor, project)


def warnings_of_all(quotas: Collection[tuple[Flavor, Project]]) -> tuple[str, ...]:
    """The same of several quotas of projects, each sentence once."""
    if not quotas:
        return ()
    book = Book(cohorts=fleet.cohorts(), queues=fleet.queues())
    found = (told(book, flavor, project) for flavor, project in quotas)
    return tuple(dict.fromkeys(sentence for each in found for sentence in each))


def told(book: Book, flavor: Flavor, project: Project | None) -> tuple[str, ...]:
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
    if project is not None:
        of = ProjectId(str(project.id))
        ceiling = book.ceiling(project=of, flavor=id)
        borrowing = book.borrowing_limit(project=of, flavor=id)
        if ceiling is not None and borrowing is not None:
            most = book.nominal(project=of, flavor=id) + borrowing
            if most > ceiling:
                found.append(
                    f"{project.name} may hold {in_units(most)} {flavor.name} by its own limits,"
                    f" and never more than {in_units(ceiling)} by what others lend and the tenants"
                    " above it permit."
                )
    return tuple(found)
