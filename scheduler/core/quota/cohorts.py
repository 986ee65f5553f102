"""The tree that quota and fair share go by: fleet > tenant > department > project.

Numbers stand for the members of the tree, so that walks towards the root are list lookups: the
fleet is 0, and a parent's number is lower than its children's.
"""

from collections.abc import Iterable, Mapping

from scheduler.core.snapshot import CohortView, QueueView, QuotaView
from scheduler.core.units import CohortId, FlavorId, ProjectId

FLEET = 0


class Cohorts:
    """Who is whose child. A cohort whose parent is unknown, or that is its own ancestor, hangs
    below the fleet, and so does a project of an unknown cohort."""

    __slots__ = (
        *("depth", "members", "names", "number", "parents", "pasts", "paths", "projects"),
        *("quotas", "totals", "weights"),
    )

    def __init__(self, *, cohorts: Iterable[CohortView], queues: Iterable[QueueView]) -> None:
        """`number` is a project's, `members` has the cohorts' too, and `projects` are by number;
        `paths` lead from below the fleet to a member, itself included; `quotas` and `pasts` are a
        member's own, by flavor; `totals` are nominal, of a member and all below it; `depth` is the
        longest path."""
        known = {cohort.id: cohort for cohort in sorted(cohorts, key=lambda c: c.id)}
        self.names: list[str] = ["the fleet"]
        self.parents: list[int] = [-1]
        self.paths: list[tuple[int, ...]] = [()]
        self.weights: list[int] = [1]
        self.quotas: list[Mapping[FlavorId, QuotaView]] = [{}]
        self.pasts: list[Mapping[FlavorId, int]] = [{}]
        self.number: dict[ProjectId, int] = {}
        numbers: dict[CohortId, int] = {}
        for id in known:
            for cohort in reversed(_upwards(known, id, numbers)):
                above = numbers.get(cohort.parent, FLEET) if cohort.parent else FLEET
                numbers[cohort.id] = self._add(above, cohort)
        for queue in queues:
            above = numbers.get(queue.cohort, FLEET) if queue.cohort else FLEET
            self.number[queue.project] = self._add(above, queue)
        self.projects = {number: project for project, number in self.number.items()}
        self.members: dict[ProjectId | CohortId, int] = dict(numbers.items())
        self.members.update(self.number.items())
        self.depth = max(len(path) for path in self.paths)
        self.totals: list[dict[FlavorId, int]] = [{} for _ in self.paths]
        for path, quotas in zip(self.paths, self.quotas, strict=True):
            for flavor, quota in quotas.items():
                for total in (self.totals[number] for number in path):
                    total[flavor] = total.get(flavor, 0) + quota.nominal_milli

    def _add(self, parent: int, member: CohortView | QueueView) -> int:
        number = len(self.parents)
        if isinstance(member, CohortView):
            self.names.append(f"cohort {member.id}")
            self.pasts.append({})
        else:
            self.names.append(f"project {member.project}")
            self.pasts.append({past.flavor: past.milli_s for past in member.past})
        self.parents.append(parent)
        self.paths.append((*self.paths[parent], number))
        self.weights.append(member.weight)
        self.quotas.append({quota.flavor: quota for quota in member.quotas})
        return number


def _upwards(
    known: Mapping[CohortId, CohortView], id: CohortId, numbered: Mapping[CohortId, int]
) -> list[CohortView]:
    """The cohort and its ancestors that have no number yet; a cycle ends where it would close."""
    found: dict[CohortId, CohortView] = {}
    above: CohortId | None = id
    while above and above in known and above not in numbered and above not in found:
        found[above] = known[above]
        above = known[above].parent
    return list(found.values())
