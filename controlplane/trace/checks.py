"""What has to hold once everything has ended: nothing booked twice, every GPU-second metered once.

Next to the scheduler's own invariants: the other side of each comparison here is the simulated
cluster's own pods, or the trace itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from clusters.port import PodReport
from controlplane.trace import facts
from controlplane.trace.fleet import CLUSTER
from controlplane.trace.reading import NodeRow, PodRow
from scheduler.loop.checking.invariants import violations
from scheduler.loop.checking.rules import told
from scheduler.selectors.fleet import rows

SHARED = "nvidia.com/gpu.shared"  # thousandths of a device, as the CSV's nodes offer them


def problems(
    *,
    nodes: Sequence[NodeRow],
    pods: Sequence[PodRow],
    reports: Sequence[PodReport],
    runs_s: int | None = None,
) -> list[str]:
    """One sentence for each thing that is wrong; none when all is well."""
    return [
        *told(violations()),
        *_ended(pods),
        *_once(),
        *_overbooked(nodes, reports),
        *_metered(reports),
        *_run_times(pods, reports, runs_s),
    ]


def _count(sql: str) -> int:
    return int(rows(sql)[0][0])


def _ended(pods: Sequence[PodRow]) -> Iterator[str]:
    counted = facts.states()
    if counted != {"SUCCEEDED": len(pods)}:
        yield f"of {len(pods)} workloads not all succeeded: {counted}"
    wrong = _count(
        "SELECT count(*) FROM (SELECT w.id FROM scheduler_workload w LEFT JOIN scheduler_attempt a"
        " ON a.workload_id = w.id AND a.outcome = 'succeeded' GROUP BY w.id"
        " HAVING count(a.id) <> 1) x"
    )
    if wrong:
        yield f"{wrong} workloads have not exactly one successful attempt"
    names = {name for (name,) in rows("SELECT name FROM scheduler_workload")}
    if names != {pod.name for pod in pods}:
        yield "the workloads are not those of the trace"


def _once() -> Iterator[str]:
    """Nothing held any more, nothing held by two at any time."""
    for what, sql in (
        ("quotas are still used", "SELECT count(*) FROM tenants_quota WHERE used_milli <> 0"),
        (
            "placements are not released",
            "SELECT count(*) FROM scheduler_placement WHERE released_at IS NULL",
        ),
        (
            "spans are not released",
            "SELECT count(*) FROM scheduler_placementspan WHERE released_at IS NULL",
        ),
        (
            "operations are not done",
            "SELECT count(*) FROM scheduler_operation WHERE done_at IS NULL",
        ),
        (
            "pairs of placements held one part of a device at one time",
            "SELECT count(*) FROM scheduler_placementspan s"
            " JOIN scheduler_placementspan o ON o.device_id = s.device_id AND o.id > s.id"
            "  AND o.span && s.span"
            " JOIN scheduler_placement p ON p.id = s.placement_id"
            " JOIN scheduler_placement q ON q.id = o.placement_id"
            " WHERE tstzrange(p.created_at, p.released_at)"
            "  && tstzrange(q.created_at, q.released_at)",
        ),
        (
            "placements have not been metered to their end",
            "SELECT count(*) FROM scheduler_placement WHERE started_at IS NOT NULL"
            " AND ended_at > started_at AND metered_until IS DISTINCT FROM ended_at",
        ),
        (
            "usage intervals have no charge",
            "SELECT count(*) FROM tenants_usageinterval u WHERE NOT EXISTS"
            " (SELECT 1 FROM tenants_charge c WHERE c.usage_id = u.id)",
        ),
    ):
        found = _count(sql)
        if found:
            yield f"{found} {what}"


def _overbooked(nodes: Sequence[NodeRow], reports: Iterable[PodReport]) -> Iterator[str]:
    """As the cluster saw it: what ran on a node at one time never passed what the node has."""
    changes: dict[str, list[tuple[datetime, int, int, int, int]]] = defaultdict(list)
    for report in reports:
        if report.started_at is None or report.finished_at is None:
            continue
        gpu = dict(report.resources).get(SHARED, 0)
        held = gpu, report.cpu_milli, report.memory_mib
        changes[report.node].append((report.started_at, 1, *held))
        changes[report.node].append((report.finished_at, -1, *held))
    for node in nodes:
        used = [0, 0, 0]
        most = (node.gpus * 1000, node.cpu_milli, node.memory_mib)
        for _, sign, *amounts in sorted(changes[node.name]):
            used = [before + sign * amount for before, amount in zip(used, amounts, strict=True)]
            if any(had > has for had, has in zip(used, most, strict=True)):
                yield f"{node.name} held {used}, and has {most}"
                break


def _metered(reports: Iterable[PodReport]) -> Iterator[str]:
    """To the microsecond and the thousandth, by tenant."""
    ran: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in reports:
        if report.started_at is None or report.finished_at is None:
            continue
        # In integers: a float of seconds would lose the microseconds of a long run.
        length = report.finished_at - report.started_at
        length_us = (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds
        gpu = dict(report.resources).get(SHARED, 0)
        ran[report.namespace][0] += gpu * length_us
        ran[report.namespace][1] += 0 if gpu else report.cpu_milli * length_us
    for slug, spend in facts.spend().items():
        pods_held = tuple(ran[f"{CLUSTER}-{slug}"])
        if pods_held != (spend.gpu_units, spend.cpu_units):
            yield (
                f"{slug}: its pods ran {pods_held[0]} thousandths of a GPU times microseconds"
                f" ({pods_held[1]} of cores), and {spend.gpu_units} ({spend.cpu_units}) are"
                " metered"
            )


def _run_times(
    pods: Iterable[PodRow], reports: Iterable[PodReport], runs_s: int | None
) -> Iterator[str]:
    """Each pod of the trace ran as long as it asked to, on the node that Berth chose."""
    wanted = {pod.name: runs_s or pod.runs_s for pod in pods}
    planned = {
        pod: (name, node)
        for pod, name, node in rows(
            "SELECT p.pod_name, w.name, n.name FROM scheduler_placement p"
            " JOIN scheduler_workload w ON w.id = p.workload_id"
            " JOIN clusters_node n ON n.id = p.node_id"
        )
    }
    strangers = elsewhere = other = 0
    for report in reports:
        if report.name not in planned:
            # What looks at nodes from inside is Berth's too, and no workload's.
            strangers += bool(report.workload)
            continue
        name, node = planned[report.name]
        elsewhere += report.node != node
        if report.started_at and report.finished_at:
            ran = (report.finished_at - report.started_at).total_seconds()
            other += ran != wanted[name]
    for count, what in (
        (strangers, "pods belong to no placement"),
        (elsewhere, "pods ran on another node than planned"),
        (other, "pods ran another time than asked"),
    ):
        if count:
            yield f"{count} {what}"
