"""The numbers that `/metrics` tells, from the database."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.db.models import Count
from django.db.models.functions import Now
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clusters import selectors as hardware
from clusters.models import Cluster, ClusterState
from controlplane.audit import chains
from controlplane.kernel import clock
from scheduler.core.failures import FailureClass
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.core.reasons import FaultKind
from scheduler.models import LIVE, CycleRecord, InvariantCheck, Operation, SchedulerLease, Workload
from scheduler.selectors import (
    budgets,
    checks,
    confinements,
    elastic,
    gates,
    idleness,
    kept,
    losses,
    pools,
    queues,
    recuts,
    strays,
    unseen,
)
from scheduler.selectors.losses import PREEMPTED
from tenants.models import Budget
from tenants.selectors import deliveries, quotas


class Counts(Collector):
    """Numbers from the database, at scrape time. Labels are states, shards, clusters, models of
    GPUs and ids of projects, never what tenants named."""

    def collect(self) -> Iterable[Metric]:
        workloads = GaugeMetricFamily(
            "berth_workloads", "Workloads that have not ended, by state.", labels=["state"]
        )
        live = Workload.objects.filter(LIVE)
        counted = {
            row["state"]: row["count"]
            for row in live.order_by().values("state").annotate(count=Count("id"))
        }
        for state in State:
            if state not in TERMINAL:
                workloads.add_metric([state.value], counted.get(state.value, 0))
        yield workloads
        lease = GaugeMetricFamily(
            "berth_scheduler_lease_left_seconds",
            "Seconds until the lease of a shard's scheduler ends; negative: nobody plans.",
            labels=["shard"],
        )
        epoch = GaugeMetricFamily(
            "berth_scheduler_lease_epoch", "How often the lease changed hands.", labels=["shard"]
        )
        for row in SchedulerLease.objects.annotate(read_at=Now()):
            lease.add_metric([row.shard], (row.expires_at - row.read_at).total_seconds())
            epoch.add_metric([row.shard], row.epoch)
        yield lease
        yield epoch
        due = Operation.objects.filter(done_at__isnull=True, due_at__lte=Now()).count()
        yield GaugeMetricFamily(
            "berth_operations_due", "Outbox rows whose time has come and that are not done.", due
        )
        yield GaugeMetricFamily(
            "berth_missing_pods", "Pods by which what runs may still grow.", elastic.missing()
        )
        enforced = GaugeMetricFamily(
            "berth_quotas_enforced",
            "Quotas below what is held, of which the rest is preempted: now, or later.",
            labels=["when"],
        )
        for when, count in quotas.enforced_counts(at=clock.now()).items():
            enforced.add_metric([when], count)
        yield enforced
        yield GaugeMetricFamily(
            "berth_nodes_stuck",
            "Nodes that stay cordoned: a recut failed, and they could not be cut back.",
            recuts.stuck_count(),
        )
        yield _of_audit()
        yield _of_confinements()
        yield _of_exposure()
        yield _of_queues()
        yield from _of_clusters()
        yield from _of_failures()
        yield from _of_check(checks.newest())
        yield from _of_cycle(waiting=counted.get(State.PENDING.value, 0))
        yield _of_kept()
        yield from _of_idleness()
        yield from _of_pools()
        yield from _of_budgets()
        yield from _of_gates()
        yield from _of_deliveries()


def _of_audit() -> Metric:
    """What collects it is an anchor of its own: a chain never becomes shorter."""
    links = CounterMetricFamily(
        "berth_audit_links", "Links of each chain of audit rows.", labels=["chain"]
    )
    for number, length in chains.lengths().items():
        links.add_metric([str(number)], length)
    return links


def _of_confinements() -> Metric:
    """Drift that was put right is no more: the audit tells of it."""
    found = GaugeMetricFamily(
        "berth_confinements_amiss",
        "Projects in a cluster whose confinement somebody changed, or that can't be confined.",
        labels=["cluster", "state"],
    )
    for one in confinements.amiss():
        found.add_metric([one.cluster, "drifted"], one.drifted)
        found.add_metric([one.cluster, "failing"], one.failing)
    return found


def _of_exposure() -> Metric:
    """Missing is not known, which is not 0."""
    unsafe = GaugeMetricFamily(
        "berth_cluster_unsafe",
        "1 where a pod that asked for no device saw some, 0 where it saw none; no sample where"
        " that is not known.",
        labels=["cluster"],
    )
    for cluster, is_unsafe in hardware.unsafe().items():
        unsafe.add_metric([cluster], int(is_unsafe))
    return unsafe


def _of_queues() -> Metric:
    """Of every kind, also where none is closed."""
    closed = GaugeMetricFamily(
        "berth_queues_closed",
        "Queues that are held or draining, by whose they are, and projects whose quota is frozen.",
        labels=["of", "state"],
    )
    for (of, state), count in queues.closed_counts().items():
        closed.add_metric([of, state], count)
    return closed


def _of_clusters() -> Iterable[Metric]:
    """Each cluster, by its name."""
    state = GaugeMetricFamily(
        "berth_cluster_state",
        "1 for the state that the cluster is in: degraded is silent for a minute, lost for ten.",
        labels=["cluster", "state"],
    )
    for name, current in Cluster.objects.order_by("name").values_list("name", "state"):
        for each in ClusterState.values:
            state.add_metric([name, each], int(each == current))
    yield state
    left = GaugeMetricFamily(
        "berth_attempts_unseen",
        "Attempts that ended as their cluster was lost, and hold on until their pods are seen"
        " gone.",
        labels=["cluster"],
    )
    for name, count in unseen.counts().items():
        left.add_metric([name], count)
    yield left
    unknown = GaugeMetricFamily(
        "berth_strays",
        "Pods of this installation that run, or have succeeded, and that the database does not"
        " know: it is older than the cluster.",
        labels=["cluster"],
    )
    unread = GaugeMetricFamily(
        "berth_cluster_unread",
        "1 where the database was put back from a backup and the cluster was not listed since.",
        labels=["cluster"],
    )
    for name, count, restored_at in strays.counts():
        unknown.add_metric([name], count)
        unread.add_metric([name], int(restored_at is not None))
    yield unknown
    yield unread


def _of_failures() -> Iterable[Metric]:
    """Every class, also of what has not happened yet."""
    failed = CounterMetricFamily(
        "berth_attempts_failed", "Attempts that failed, by the class of that.", labels=["failure"]
    )
    lost = CounterMetricFamily(
        "berth_lost_device_seconds",
        "Devices x seconds of work since its last checkpoint that was lost with an attempt, by"
        " the class of its failure, or as it was evicted for others.",
        labels=["why"],
    )
    counted = losses.by_cause()
    for failure in FailureClass:
        failed.add_metric([failure.value], counted[failure].count)
    for why in (PREEMPTED, *FailureClass):
        lost.add_metric([why], counted[why].lost_milli_s / 1000)
    yield failed
    yield lost


def _of_check(newest: InvariantCheck | None) -> Iterable[Metric]:
    """The last two are missing before the first check."""
    yield GaugeMetricFamily(
        "berth_admission_stopped",
        "1 while nothing new starts because a promise is broken.",
        int(newest is not None and newest.stops),
    )
    if newest is not None:
        yield GaugeMetricFamily(
            "berth_invariant_violations", "What the newest check found.", len(newest.violations)
        )
        yield GaugeMetricFamily(
            "berth_invariant_check_age_seconds",
            "Since the newest check began: much more than BERTH_INVARIANTS_S if none gets done.",
            (clock.now() - newest.at).total_seconds(),
        )


def _of_cycle(*, waiting: int) -> Iterable[Metric]:
    """Every kind of fault, also those that the newest cycle did not find. There is no cycle, and
    nothing is kept, while nothing waits."""
    rows = CycleRecord.objects.order_by("-id").values_list("faults", "plan__keeps")
    found, keeps = rows.first() or ({}, None)
    gauge = GaugeMetricFamily(
        "berth_snapshot_faults",
        "Contradictions in what the newest cycle was planned from, by kind.",
        labels=["kind"],
    )
    for kind in FaultKind:
        gauge.add_metric([kind], found[kind]["count"] if kind in found else 0)
    yield gauge
    yield GaugeMetricFamily(
        "berth_kept_idle_devices",
        "Devices that are free and kept for who has waited longer than BERTH_GUARD_S.",
        sum(idle_milli for _, _, idle_milli in (keeps or ()) if waiting) / 1000,
    )


def _of_kept() -> Metric:
    return CounterMetricFamily(
        "berth_kept_idle_device_seconds",
        "Devices x seconds that stood free because they were kept for who had waited longer than"
        " BERTH_GUARD_S, whether or not others would have used them.",
        kept.total_milli_s() / 1000,
    )


def _of_budgets() -> Iterable[Metric]:
    """Of those whose period it is, by id: what tenants named stays with them."""
    labels = ["budget", "of", "period", "mode"]
    limit = GaugeMetricFamily(
        "berth_budget_limit_device_seconds", "Devices x seconds of a budget.", labels=labels
    )
    used = GaugeMetricFamily(
        "berth_budget_used_device_seconds",
        "Devices x seconds that were used of a budget in its period, by now.",
        labels=labels,
    )
    rows = Budget.objects.select_related("project", "tenant").order_by("id")
    for one in budgets.standings(budgets=rows, at=clock.now()):
        row = one.budget
        of = "project" if row.project_id else "tenant"
        told = [str(row.id), of, row.period, row.mode]
        limit.add_metric(told, one.limit_milli_s / 1000)
        used.add_metric(told, one.used_milli_s / 1000)
    yield limit
    yield used


def _of_idleness() -> Iterable[Metric]:
    """Only of projects with idle work, by their ids."""
    idle = GaugeMetricFamily(
        "berth_idle_devices",
        "Devices of running work that leaves all its devices unused, by the project's id.",
        labels=["project"],
    )
    held: Counter[UUID] = Counter()
    for each in idleness.everywhere():
        held[each.project] += each.held_milli
    for project, held_milli in held.items():
        idle.add_metric([str(project)], held_milli / 1000)
    yield idle
    yield CounterMetricFamily(
        "berth_freed_devices",
        "Devices taken back from work that left them unused for too long.",
        idleness.freed_milli() / 1000,
    )


def _of_gates() -> Iterable[Metric]:
    """Those of each kind, also where none waits."""
    count = GaugeMetricFamily(
        "berth_gates_waiting", "Gates that nobody has decided, by kind.", labels=["kind"]
    )
    age = GaugeMetricFamily(
        "berth_gate_oldest_seconds",
        "For how long the oldest of them waits; 0 when none does.",
        labels=["kind"],
    )
    at = clock.now()
    for each in gates.backlog():
        count.add_metric([each.kind], each.count)
        waits = at - each.since if each.since else timedelta()
        age.add_metric([each.kind], waits.total_seconds())
    yield count
    yield age


def _of_deliveries() -> Iterable[Metric]:
    """Of mail and of channels, also where nothing waits."""
    count = GaugeMetricFamily(
        "berth_deliveries",
        "Messages to people and other systems that did not arrive: waiting for their first try,"
        " failing and tried again, or given up within a day.",
        labels=["lane", "state"],
    )
    age = GaugeMetricFamily(
        "berth_delivery_oldest_seconds",
        "For how long the oldest that is not given up waits; 0 when none does.",
        labels=["lane"],
    )
    at = clock.now()
    for each in deliveries.standings(at=at):
        count.add_metric([each.lane, "waiting"], each.waiting)
        count.add_metric([each.lane, "failing"], each.failing)
        count.add_metric([each.lane, "given-up"], each.given_up)
        waits = at - each.since if each.since else timedelta()
        age.add_metric([each.lane], waits.total_seconds())
    yield count
    yield age


def _of_pools() -> Iterable[Metric]:
    """What the loop measured last, where that is fresh."""
    gauges = {
        name: GaugeMetricFamily(f"berth_pool_{name}", told, labels=["cluster", "model"])
        for name, told in (
            ("devices", "Usable devices."),
            ("free_devices", "Devices that nobody holds; a slice counts by its memory."),
            ("stranded_devices", "Free devices that no pod that waits could get."),
            ("whole_nodes", "Nodes that are all free."),
        )
    }
    gangs = GaugeMetricFamily(
        "berth_pool_gang_pods",
        "The most pods of so many whole devices each that fit now.",
        labels=["cluster", "model", "devices_a_pod"],
    )
    for one in pools.everywhere(at=clock.now()):
        of = [one.cluster.name, one.model]
        gauges["devices"].add_metric(of, one.total_milli / 1000)
        gauges["free_devices"].add_metric(of, one.free_milli / 1000)
        gauges["stranded_devices"].add_metric(of, one.stranded_milli / 1000)
        gauges["whole_nodes"].add_metric(of, one.whole_nodes)
        for level, size, pods in one.gangs:
            if not level:
                gangs.add_metric([*of, str(size)], pods)
    yield from gauges.values()
    yield gangs
