"""Which requests for quota were asked for at once. Whoever sees one sees the others: they are of
one project."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tenants.models import QuotaRequest


@dataclass(frozen=True, slots=True)
class Beside:
    """One that was asked for with another."""

    id: UUID
    flavor: str
    nominal_milli: int
    decision: str


def beside(*, requests: Sequence[QuotaRequest]) -> dict[UUID, tuple[Beside, ...]]:
    """By request, the others that were asked for with it, in their order; none of one that was
    asked for alone. One query, or none where all were."""
    together = {row.together for row in requests if row.together}
    if not together:
        return {}
    parts = QuotaRequest.objects.filter(together__in=together).order_by("id")
    by_whole: dict[tuple[UUID | None, UUID], list[Beside]] = {}
    for part in parts.select_related("flavor"):
        told = Beside(part.id, part.flavor.name, part.nominal_milli, part.decision)
        by_whole.setdefault((part.together, part.project_id), []).append(told)
    return {
        row.id: tuple(each for each in by_whole[row.together, row.project_id] if each.id != row.id)
        for row in requests
        if row.together
    }
