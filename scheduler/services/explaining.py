"""Why a workload waits, and what would become of one that is not submitted yet. Nothing is stored.

The plan is made here and now, from a snapshot of its own: what is told is what the next cycle
would decide if nothing changed. Of others it tells counts only: no workload, project or person.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from uuid import UUID

from controlplane.kernel.errors import Conflict
from scheduler.core.explaining.change import Change, Relaxation
from scheduler.core.explaining.checks import Chain, Check, CheckCode
from scheduler.core.explaining.explain import Explanation, explain
from scheduler.core.plan import Admit, Hold
from scheduler.core.policy import Policy
from scheduler.core.reasons import Reason
from scheduler.core.simulating.estimate import Forecast, forecast
from scheduler.core.snapshot import PendingView, Snapshot
from scheduler.core.units import NOBODY, UserId
from scheduler.models import PodSet, Workload
from scheduler.selectors import checks, choices, decisions, history, policy
from scheduler.selectors.decisions import Decided
from scheduler.selectors.load import load
from scheduler.services import admissibility, arrays, asking, dependencies, gates, workloads
from scheduler.services.specs import ArraySpec, WorkloadSpec
from scheduler.services.workloads import Checked
from tenants import access
from tenants.access import Action, Actor
from tenants.gating import GateSpec
from tenants.models import Project, Tenant

BUDGET_S = 2.0
"""Real seconds after which nothing further is tried that might help, and none after that for the
estimate: the answer then has less of it."""
_OF_POD_SETS = {
    *(Change.CORES, Change.MEMORY, Change.PODS, Change.GPUS, Change.SHARE, Change.TOPOLOGY)
}
PASSES = 8
"""Of the estimate in a dry run: the one that is stored each minute rests on more."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where it starts; `pods` are those that start. `choice` is why there, if there was one."""

    cluster: str
    flavors: tuple[str, ...]
    pods: int
    choice: choices.Told | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """`start` or `reason`, as of a moment. Checks name tenants, changes name pod sets. `forecast`
    is that of a dry run of what would wait, `gates` those that it would get. `decided` is the
    cycle that held it, of what waits already."""

    as_of: datetime
    start: Start | None
    reason: Reason | None
    checks: tuple[Check, ...]
    chains: tuple[Chain, ...]
    relaxations: tuple[Relaxation, ...]
    forecast: Forecast | None = None
    gates: tuple[GateSpec, ...] = ()
    decided: Decided | None = None


def of_workload(*, actor: Actor, workload: Workload, at: datetime) -> Explained:
    """Why it waits. Raises NotFound for who may not see it, Conflict when it waits no more, and
    TooOften."""
    access.authorize(actor, Action.VIEW, project=workload.project)
    with asking.turn(actor=actor, at=at):
        snapshot = load(at=at).snapshot
        waiting = next((p for p in snapshot.pending if p.id == str(workload.id)), None)
        if waiting is None:
            raise Conflict(f"{workload.name} does not wait: only what waits is explained.")
        found = _explain(snapshot, rules(), waiting)
    names = PodSet.objects.filter(workload=workload).values_list("id", "name")
    told = _told(snapshot, found, at, pod_sets={str(id): name for id, name in names})
    return replace(told, decided=decisions.of_waiting(workload=workload))


def dry_run(
    *,
    actor: Actor,
    project: Project,
    spec: WorkloadSpec,
    array: ArraySpec | None = None,
    at: datetime,
) -> Explained:
    """What would become of it, or of one element of the array, if it were submitted now.

    Raises what `workloads.check`, or `arrays.check`, raises, and TooOften.
    """
    checked = check(actor=actor, project=project, spec=spec, array=array, at=at)
    [spec] = checked.specs
    with asking.turn(actor=actor, at=at):
        snapshot = load(at=at).snapshot
        asks, planned_by = pending(actor=actor, checked=checked, snapshot=snapshot), rules()
        found = _explain(snapshot, planned_by, asks)
        waits, begun = isinstance(found.decision, Hold), perf_counter()
        made = estimate(snapshot, planned_by, asks, begun=begun) if waits else None
    names = {str(pod_set.id): str(pod_set.id) for pod_set in asks.pod_sets}
    told = _told(snapshot, found, at, pod_sets=names)
    return replace(told, forecast=made, gates=gates.wanted(project=project, spec=spec))


def check(
    *, actor: Actor, project: Project, spec: WorkloadSpec, array: ArraySpec | None, at: datetime
) -> Checked:
    """What is submitted, or one element of it. Raises what `workloads.check`, or `arrays.check`,
    raises."""
    if array is None:
        return workloads.check(actor=actor, project=project, specs=[spec], at=at)
    return arrays.check(actor=actor, project=project, spec=spec, array=array, at=at)


def rules() -> Policy:
    """As `loop.run` decides: while admission is stopped nothing starts."""
    return replace(policy.current(), admission=not checks.admission_stopped())


def pending(*, actor: Actor, checked: Checked, snapshot: Snapshot) -> PendingView:
    """What was checked, which is one, as it would wait in the snapshot."""
    project, [spec] = checked.project, checked.specs
    at = datetime.fromtimestamp(snapshot.at, UTC)
    return replace(
        admissibility.pending_view(project, spec, checked.flavors, checked.clusters, at),
        user=_submitter(actor, project),
        waits_for=dependencies.unmet(actor=actor, spec=spec),
        gate=gates.first(gates.wanted(project=project, spec=spec), at=snapshot.at),
    )


def _submitter(actor: Actor, project: Project) -> UserId:
    """As `load` has it: where users have caps."""
    capped = project.user_max_running is not None or project.user_max_gpus_milli is not None
    return UserId(str(actor.user.id)) if capped else NOBODY


def _explain(snapshot: Snapshot, planned_by: Policy, asks: PendingView) -> Explanation:
    begun = perf_counter()
    return explain(
        snapshot=snapshot,
        policy=planned_by,
        pending=asks,
        late=lambda: perf_counter() - begun > BUDGET_S,
    )


def estimate(
    snapshot: Snapshot, planned_by: Policy, asks: PendingView, *, begun: float
) -> Forecast:
    """When what is not in the snapshot would start. Of little weight once BUDGET_S have passed
    since `begun`, by the process's counter."""
    found = forecast(
        snapshot=replace(snapshot, pending=(*snapshot.pending, asks)),
        policy=planned_by,
        run_times=history.run_times(),
        passes=PASSES,
        seed=snapshot.at,
        late=lambda: perf_counter() - begun > BUDGET_S,
    )
    return next(one for one in found if one.workload == asks.id)


def start(snapshot: Snapshot, decision: Admit) -> Start:
    """With names for ids."""
    clusters = {cluster.id: cluster.name for cluster in snapshot.clusters}
    flavors = {flavor.id: flavor.name for flavor in snapshot.flavors}
    names = dict.fromkeys(flavors[place.flavor] for place in decision.places)
    choice = choices.shown(choices.naming(snapshot)(decision.choice))
    return Start(clusters[decision.cluster], tuple(names), len(decision.places), choice)


def _told(
    snapshot: Snapshot, found: Explanation, at: datetime, *, pod_sets: Mapping[str, str]
) -> Explained:
    """With names for ids."""
    decision = found.decision
    tenants = _tenants(found)
    return Explained(
        as_of=at,
        start=start(snapshot, decision) if isinstance(decision, Admit) else None,
        reason=None if isinstance(decision, Admit) else decision.reason,
        checks=found.checks,
        chains=tuple(
            replace(chain, checks=tuple(_named(check, tenants) for check in chain.checks))
            for chain in found.chains
        ),
        relaxations=tuple(
            replace(one, subject=pod_sets.get(one.subject, ""))
            if one.change in _OF_POD_SETS
            else one
            for one in found.relaxations
        ),
    )


def _tenants(found: Explanation) -> dict[str, str]:
    """Those above the project, which its members see."""
    asked = {
        UUID(check.where)
        for chain in found.chains
        for check in chain.checks
        if check.code is CheckCode.TENANT_QUOTA
    }
    rows = Tenant.objects.filter(id__in=asked).values_list("id", "name") if asked else ()
    return {str(id): name for id, name in rows}


def _named(check: Check, tenants: Mapping[str, str]) -> Check:
    if check.code is not CheckCode.TENANT_QUOTA:
        return check
    return replace(check, where=tenants.get(check.where, ""))
