"""Pods that others made → workloads: who belongs together, and what that asks for.

Run beside a cluster's watch, for it asks the cluster who owns them: no network inside a
transaction. What is refused stays gated, with why in its row, and is asked again later.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from clusters.caught import CaughtPod, OwnerRef, OwnerReport
from clusters.models import Cluster
from clusters.port import ClusterError, ClusterPort
from controlplane.kernel import hints, statements
from controlplane.kernel.errors import AppError
from scheduler.core.lifecycle import State
from scheduler.loop.catching import grouping, vanished
from scheduler.loop.catching.asking import Offers, Refused
from scheduler.loop.catching.grouping import Group, Waiting
from scheduler.loop.pods.caught import heard
from scheduler.loop.reach import Reach
from scheduler.models import AttemptOutcome, Origin, PodSet, Workload
from scheduler.models import CaughtPod as Row
from scheduler.selectors.caught import FREE
from scheduler.selectors.fleet import rows
from scheduler.services import policies, workloads
from scheduler.services.transition import Step, transition
from tenants.access import Actor
from tenants.models import Member, Project, Role, User
from tenants.policy import Said
from tenants.selectors import policies as policy_of

logger = logging.getLogger(__name__)

ACTOR = "system:kubernetes"
AGAIN = timedelta(seconds=15)
"""After which what was refused, or still gathers, is looked at again."""
_BROKE = "Berth failed to take it in. Its log in the installation says why."
MOST = 500
"""Pods that one call looks at, of each project in turn."""


def take_in(*, port: ClusterPort, cluster: Cluster, at: datetime) -> None:
    """Make workloads of pods that wait in the cluster, or parts of those that are there; cancel
    those whose owners are gone, or have changed. A call that fails is logged: the next time shows
    what is left."""
    reach = Reach()
    owners = _Owners(port, reach)
    _follow(cluster, owners, at)
    vanished.give_up_lacking(cluster=cluster, at=at)
    # Those of work that ended by itself, none of which it had begun to take: they are other work.
    left = Row.objects.filter(cluster=cluster, gone_at__isnull=True, placement__isnull=True)
    ended = left.filter(pod_set__workload__state__in=(State.SUCCEEDED, State.FAILED))
    ended.update(pod_set=None, asked_at=None)
    waiting = _longest_unasked(cluster)
    if not any(row.asked_at is None or at - row.asked_at >= AGAIN for row in waiting):
        return
    offers = Offers(port=port, cluster=cluster, reach=reach)
    together: dict[tuple[Project, str], tuple[Group, list[Waiting]]] = {}
    for row in waiting:
        says = heard(row.said)
        why = _why_not(says)
        if why:
            _refuse([row], why, at)
            continue
        try:
            asks = offers.asks(said=row.said, namespace=row.project.namespace)
        except Refused as refusal:
            why = str(refusal)
        except ClusterError as error:
            why = f"What it claims could not be read: {error}"
        if why:
            _refuse([row], why, at)
            continue
        pod = Waiting(row, says, asks, offers)
        group = owners.group(pod)
        if group is not None:
            together.setdefault((row.project, group.key), (group, []))[1].append(pod)
        else:
            _refuse([row], row.refusal, at)  # not to be the first of all for ever
    for group, pods in together.values():
        _join(cluster, group, pods, at)


def _why_not(says: CaughtPod) -> str:
    """Why Berth does not take it in, whatever it asks for, "" where it does."""
    if says.steered:
        return f"It has {says.steered}, and Berth chooses the nodes. Leave that out."
    if says.behind:
        return f"Somebody else's gate holds it, too: {says.behind}. Berth takes it in after."
    return ""


def _longest_unasked(cluster: Cluster) -> list[Row]:
    """MOST pods that are no workload's: of each project in turn that which was asked of never, or
    longest ago. So what is refused holds up nobody else."""
    longest = (F("asked_at").asc(nulls_first=True), F("id").asc())
    turn = Window(RowNumber(), partition_by=F("project_id"), order_by=longest)
    found = Row.objects.filter(cluster=cluster, pod_set__isnull=True, gone_at__isnull=True)
    in_turn = found.annotate(turn=turn).order_by("turn", *longest)
    return list(in_turn.select_related("project")[:MOST])


class _Owners:
    """Who owns what, each asked once."""

    def __init__(self, port: ClusterPort, reach: Reach) -> None:
        self._port = port
        self._reach = reach
        self._known: dict[str, OwnerReport | ClusterError | None] = {}

    def read(self, namespace: str, owner: OwnerRef) -> OwnerReport | None:
        """None when it is gone. Raises ClusterError."""
        if owner.uid not in self._known:
            try:
                self._known[owner.uid] = self._reach.call(
                    lambda: self._port.read_owner(namespace=namespace, owner=owner)
                )
            except ClusterError as error:
                self._known[owner.uid] = error
        found = self._known[owner.uid]
        if isinstance(found, ClusterError):
            raise found
        return found

    def group(self, pod: Waiting) -> Group | None:
        """With which it starts; None when nobody knows now."""
        said, row = pod.says, pod.row
        owner = said.owner
        if said.owner is not None:
            try:
                report = self.read(row.project.namespace, said.owner)
            except ClusterError as error:
                logger.warning("who owns the pod %s is not known: %s", row.name, error)
                return None
            if report is None:
                return None  # its pods go after it
            owner, sizes = report.top, dict(report.sizes)
            if said.part in sizes:
                key = f"{owner.uid}/{said.of}" if said.of else owner.uid
                name = f"{owner.name}-{said.of}" if said.of else owner.name
                return Group(key, name, sizes, owner)
        if said.gang:
            return Group(
                f"gang {said.gang} of {said.gang_size}", said.gang, {"": said.gang_size}, owner
            )
        return Group(f"pod {row.uid}", row.name, {said.part: 1}, owner)


def _join(cluster: Cluster, group: Group, pods: Sequence[Waiting], at: datetime) -> None:
    """Have them be of the workload that their group is, or make it. What others wrote may be what
    nobody thought of: whatever breaks, it is refused alone."""
    try:
        _take_together(cluster, group, pods, at)
    except (Refused, AppError) as refusal:
        _refuse([pod.row for pod in pods], str(refusal), at)
    except Exception:
        logger.exception("%s could not be made a workload", group.name)
        _refuse([pod.row for pod in pods], _BROKE, at)


def _take_together(cluster: Cluster, group: Group, pods: Sequence[Waiting], at: datetime) -> None:
    """Raises Refused and AppError."""
    project = pods[0].row.project
    checked = None
    chain = policy_of.of_project(project)
    if _live(cluster, project, group.key) is None:
        spec = grouping.spec(cluster, group, pods, labels=policies.labels_wanted(chain))
        checked = workloads.check(actor=_actor(project), project=project, specs=[spec], at=at)
    with transaction.atomic():
        _one_at_a_time(cluster)
        origin = _live(cluster, project, group.key)
        if origin is None and checked is not None:
            [made] = workloads.store(checked=checked, at=at)
            origin = _store_origin(cluster, group, pods[0].says, made)
        if origin is not None:  # else it has ended just now: the next time there is another
            _attach(origin, pods, chain, at)


def _live(cluster: Cluster, project: Project, key: str) -> Origin | None:
    return (
        Origin.objects.filter(
            cluster=cluster,
            key=key,
            workload__project=project,
            workload__ended_at__isnull=True,
        )
        .select_related("workload")
        .first()
    )


def _one_at_a_time(cluster: Cluster) -> None:
    """Two watches of one cluster make no two workloads of one group. Until the commit."""
    with statements.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 79))", [str(cluster.id)])


def _actor(project: Project) -> Actor:
    """Who submits what others made in a cluster: whom its API server let make pods in a project's
    namespace may submit in that project. Nobody signs in as this one."""
    user, _ = User.objects.get_or_create(
        username=ACTOR, defaults={"is_active": False, "password": "!"}
    )
    return Actor(user, memberships=(Member(user=user, project=project, role=Role.MEMBER),))


def _store_origin(cluster: Cluster, group: Group, said: CaughtPod, workload: Workload) -> Origin:
    owner = group.owner or OwnerRef("", "", group.name, "")
    return Origin.objects.create(
        workload=workload,
        cluster=cluster,
        key=group.key,
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        creator=said.creator,
    )


def _attach(origin: Origin, pods: Sequence[Waiting], chain: Sequence[Said], at: datetime) -> None:
    """Each to its pod set, while there is a place for it and it asks for what the others do, and
    runs what policies permit: it may have come after they were asked."""
    sets = {each.name: each for each in PodSet.objects.filter(workload_id=origin.workload_id)}
    taken: dict[UUID, int] = dict(
        rows(
            "SELECT s.id, count(c.id) FROM scheduler_podset s JOIN scheduler_caughtpod c"
            " ON c.pod_set_id = s.id AND c.gone_at IS NULL WHERE s.workload_id = %s GROUP BY 1",
            [origin.workload_id],
        )
    )
    for pod in pods:
        row = pod.row
        pod_set = sets.get(grouping.set_name(pod.says.part))
        if pod_set is None:
            _refuse([row], f"{origin} started without its part {pod.says.part}.", at)
        elif taken.get(pod_set.id, 0) >= pod_set.count:
            _refuse([row], f"{origin} has all its {pod_set.count} pods; this is one more.", at)
        elif (pod.asks.cpu_milli, pod.asks.memory_mib) != (pod_set.cpu_milli, pod_set.memory_mib):
            _refuse([row], f"It asks for other cores or memory than the others of {origin}.", at)
        elif why := (
            policies.image_problem(chain, pod.says.images) or _other_devices(pod, pod_set, origin)
        ):
            _refuse([row], why, at)
        else:
            taken[pod_set.id] = taken.get(pod_set.id, 0) + 1
            Row.objects.filter(id=row.id, pod_set__isnull=True).update(
                pod_set=pod_set, refusal="", said=row.said | {"requests": pod.requests_said()}
            )
            hints.hint(hints.CYCLE)


def _other_devices(pod: Waiting, pod_set: PodSet, origin: Origin) -> str:
    """Why it can't have the devices of the others, "" where it can."""
    try:
        of = pod.devices()
    except Refused as refusal:
        return str(refusal)
    accepted = set(pod_set.flavors.values_list("name", flat=True))
    asked, others = (of.gpu_count, of.gpu_milli), (pod_set.gpu_count, pod_set.gpu_milli)
    same = asked == others and set(of.flavors) == accepted
    return "" if same else f"It asks for other devices than the others of {origin}."


def _refuse(those: Sequence[Row], why: str, at: datetime) -> None:
    ids = [row.id for row in those]
    Row.objects.filter(id__in=ids, pod_set__isnull=True).update(refusal=why[:500], asked_at=at)


# Those that wait and lack pods, with how many they want in all, how many are there, and how many
# pods wait beside them in vain.
_GATHERING = f"""
SELECT o.id, (SELECT sum(s.count) FROM scheduler_podset s WHERE s.workload_id = w.id), h.here
FROM scheduler_origin o JOIN scheduler_workload w ON w.id = o.workload_id
CROSS JOIN LATERAL (
    SELECT count(c.id) AS here FROM scheduler_podset s
    JOIN scheduler_caughtpod c ON c.pod_set_id = s.id AND {FREE}
    WHERE s.workload_id = w.id) h
WHERE o.cluster_id = %s AND w.ended_at IS NULL AND w.state = 'PENDING'
"""  # noqa: S608  # a constant


def _follow(cluster: Cluster, owners: _Owners, at: datetime) -> None:
    """Cancel what waits for pods that will not come, as its owner is gone or none is its; and what
    its owner asks otherwise for now: its pods are caught anew."""
    short = {id: here for id, wanted, here in rows(_GATHERING, [cluster.id]) if here < wanted}
    found = Origin.objects.filter(id__in=short).select_related("workload__project").order_by("id")
    for origin in found:
        why = _is_over(origin, short[origin.id], owners)
        if why:
            _cancel(origin, why, at)


def _is_over(origin: Origin, here: int, owners: _Owners) -> str:
    """Why what is short of pods waits no longer, "" when it does."""
    if not origin.uid:
        return "" if here else _left(origin)
    namespace = origin.workload.project.namespace
    top = OwnerRef(origin.api_version, origin.kind, origin.name, origin.uid)
    # From its pods upward, as when they were caught: the topmost may not tell what is below it.
    last = Row.objects.filter(pod_set__workload_id=origin.workload_id).order_by("-id").first()
    lowest = heard(last.said).owner if last else None
    try:
        report = owners.read(namespace, lowest or top)
        if report is None and owners.read(namespace, top) is not None:
            return ""  # what is between them is made anew
    except ClusterError as error:
        logger.warning("what became of %s is not known: %s", origin, error)
        return ""
    if report is None:
        return f"its {origin.kind} {origin.name} was deleted"
    asked = {grouping.set_name(part): size for part, size in report.sizes}
    sets = dict(PodSet.objects.filter(workload_id=origin.workload_id).values_list("name", "count"))
    if not origin.key.startswith(origin.uid):
        return "" if here else _left(origin)
    return "" if asked == sets else f"its {origin.kind} {origin.name} asks for other pods now"


def _left(origin: Origin) -> str:
    """Why it has no pods, of what has no owner that Berth knows."""
    last = origin.workload.attempts.order_by("-number").first()
    if last is not None and last.outcome == AttemptOutcome.PREEMPTED:
        return "Berth evicted it: its pods were deleted, and nobody made them again"
    return "its pods were deleted"


def _cancel(origin: Origin, why: str, at: datetime) -> None:
    work = origin.workload
    with transaction.atomic():
        step = Step(work.id, work.project_id, State.PENDING, State.CANCELLED, why)
        if transition([step], actor=ACTOR, actor_name="kubernetes", at=at):
            Row.objects.filter(pod_set__workload_id=work.id, gone_at__isnull=True).update(
                pod_set=None, placement=None, asked_at=None
            )
            hints.hint(hints.CYCLE)
