"""Which tenants are above which: a few hundred ids, read at once and walked in memory."""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from controlplane.kernel import statements

type Parents = Mapping[UUID, UUID | None]
"""All tenants, child → parent."""


def parents() -> Parents:
    """One query."""
    return parents_and_homes([])[0]


def parents_and_homes(projects: Iterable[UUID]) -> tuple[Parents, Mapping[UUID, UUID]]:
    """The same, and to which tenants those projects belong. One query."""
    with statements.cursor() as cursor:
        cursor.execute(
            "SELECT id, parent_id, FALSE FROM tenants_tenant UNION ALL"
            " SELECT id, tenant_id, TRUE FROM tenants_project WHERE id = ANY(%s::uuid[])",
            [list(projects)],
        )
        rows = cursor.fetchall()
    return (
        {id: above for id, above, is_project in rows if not is_project},
        {id: above for id, above, is_project in rows if is_project},
    )


def ancestors(tenant_id: UUID | None, *, parents: Parents) -> Iterator[UUID]:
    """The tenant and all above it, from below."""
    while tenant_id is not None:
        yield tenant_id
        tenant_id = parents.get(tenant_id)


def below(tenant_id: UUID, *, parents: Parents) -> list[UUID]:
    """The tenant and all those that have it above them."""
    return [each for each in parents if tenant_id in ancestors(each, parents=parents)]
