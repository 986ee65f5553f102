"""What holds of what is submitted to a project, or below a tenant, and whose word that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tenants import access, ancestry, policy
from tenants.access import Action, Actor, Place
from tenants.ancestry import Parents
from tenants.models import Project, SubmitPolicy
from tenants.policy import InForce, Rules, Said
from tenants.selectors import idle_limits, run_times

FLEET = "the fleet"
"""Who says what holds everywhere."""

_CHAIN = """
WITH RECURSIVE above (id, parent_id, name, height) AS (
    SELECT id, parent_id, name::text, 0 FROM tenants_tenant WHERE id = %(tenant)s
  UNION ALL
    SELECT t.id, t.parent_id, t.name::text, a.height + 1
    FROM tenants_tenant t JOIN above a ON a.parent_id = t.id)
SELECT p.*, a.name AS of_tenant
FROM tenants_submitpolicy p LEFT JOIN above a ON a.id = p.tenant_id
WHERE p.project_id = %(project)s OR a.id IS NOT NULL
   OR (p.project_id IS NULL AND p.tenant_id IS NULL)
ORDER BY p.project_id IS NOT NULL, p.tenant_id IS NOT NULL, a.height DESC
"""


def of_project(project: Project) -> tuple[Said, ...]:
    """From the fleet down to its own. One query."""
    return _chain(tenant=project.tenant_id, project=project.id, own=project.name)


def of_place(of: Place) -> tuple[Said, ...]:
    """As `of_project`; None is the fleet. One query."""
    if isinstance(of, Project):
        return of_project(of)
    return _chain(tenant=of.id if of else None, project=None, own="")


def of_running(of: Place) -> tuple[InForce, ...]:
    """What holds there of work that runs, beside what chains say of submissions: how long it may
    be idle, and from when it may be evicted. Without what nobody says and the fleet does not
    bound. Two queries, none for the fleet."""
    idle, least = idle_limits.in_force(of=of), run_times.in_force(of=of)
    return tuple(
        InForce(rule, value, by or FLEET)
        for rule, value, by in (
            ("idle_timeout_s", idle.limit.timeout_s, idle.by),
            ("min_run_time_s", least.seconds, least.by),
        )
        if value or by
    )


def in_force(of: Place, chain: Sequence[Said]) -> tuple[InForce, ...]:
    """What holds there of submissions, by its chain, and of work that runs, each with whose word
    it is. Two queries, none for the fleet."""
    return (*policy.in_force(chain), *of_running(of))


def above(of: Place) -> tuple[Said, ...]:
    """What holds there without its own word. One query."""
    if isinstance(of, Project):
        return _chain(tenant=of.tenant_id, project=None, own="")
    return _chain(tenant=of.parent_id, project=None, own="") if of else ()


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All that is said, by the id of who says it, None being the fleet; `parents` of tenants."""

    said: Mapping[UUID | None, Said]
    parents: Parents

    def chain(self, project: Project) -> tuple[Said, ...]:
        """As `of_project`, without a query."""
        above = ancestry.ancestors(project.tenant_id, parents=self.parents)
        places = (project.id, *above, None)
        return tuple(self.said[id] for id in reversed(places) if id in self.said)

    def otherwise(self, of: Place, rules: Rules) -> "Everywhere":
        """As if the place said this, and nothing else."""
        return replace(self, said={**self.said, of.id if of else None: drafted(of, rules)})


def everywhere() -> Everywhere:
    """Two queries."""
    rows = SubmitPolicy.objects.select_related("project", "tenant")
    said = {row.project_id or row.tenant_id: Said(_name(row), row.rules) for row in rows}
    return Everywhere(said, ancestry.parents())


def drafted(of: Place, rules: Rules) -> Said:
    """As the place would say it."""
    return Said(of.name if of else FLEET, rules)


def _name(row: SubmitPolicy) -> str:
    said_by = row.project or row.tenant
    return said_by.name if said_by else FLEET


def own(of: Place) -> SubmitPolicy:
    """What it says itself; of version 0 and not stored where it never said anything. One query."""
    project, tenant = access.project_and_tenant(of)
    found = SubmitPolicy.objects.filter(project=project, tenant=tenant).first()
    return found or SubmitPolicy(project=project, tenant=tenant, version=0)


def may_set_above(actor: Actor, of: Place) -> bool:
    """Whether the actor may say it by a role above the place, so that its own people can't undo
    it."""
    if of is None:
        return False
    above = of.tenant if isinstance(of, Project) else of.parent
    return access.allowed_at(actor, Action.EDIT_POLICY, place=above)


def _chain(*, tenant: UUID | None, project: UUID | None, own: str) -> tuple[Said, ...]:
    rows = SubmitPolicy.objects.raw(_CHAIN, {"tenant": tenant, "project": project})
    return tuple(
        Said(own if row.project_id else row.of_tenant or FLEET, row.rules)  # type: ignore[attr-defined]  # of the query
        for row in rows
    )
