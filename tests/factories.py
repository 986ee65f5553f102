"""Rows for tests: plain functions, no random data, each default the smallest that is legal."""

import hashlib
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange

from clusters.models import (
    Cluster,
    ClusterProbe,
    ClusterState,
    Device,
    DeviceMode,
    DeviceSlice,
    Flavor,
    FlavorKind,
    ForeignSpan,
    HardwareQueue,
    Isolation,
    Node,
    NodePool,
)
from clusters.port import Verdict
from controlplane.kernel.queues import QueueState
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.models import (
    Attempt,
    CycleRecord,
    Defragmentation,
    Estimate,
    Gate,
    Inspection,
    Placement,
    PlacementSpan,
    PodSet,
    PodSetFlavor,
    Recut,
    Workload,
    WorkloadArray,
    WorkloadEvent,
)
from scheduler.services.specs import PRIORITY_CLASSES
from tenants.models import (
    Budget,
    BudgetMode,
    Charge,
    GateKind,
    Member,
    Period,
    Project,
    Quota,
    QuotaRequest,
    Rate,
    Reservation,
    Role,
    StandingGate,
    Tenant,
    Token,
    UsageInterval,
    User,
)

AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
"""The moment of everything that does not say otherwise."""
SECRET = "0123456789abcdef" * 4
"""The secret of every token made here; `bearer` tells the header."""
_numbers = itertools.count(1)


def user(username: str, **fields: Any) -> User:  # Any: model fields
    made = User(username=username, email=f"{username}@example.org", **fields)
    made.set_password(username)
    made.save()
    return made


def tenant(name: str = "Vision Lab", *, parent: Tenant | None = None, **fields: Any) -> Tenant:
    fields.setdefault("slug", name.lower().replace(" ", "-"))
    return Tenant.objects.create(name=name, parent=parent, created_at=AT, **fields)


def project(within: Tenant, name: str = "Detection", **fields: Any) -> Project:
    slug = fields.setdefault("slug", name.lower().replace(" ", "-"))
    fields.setdefault("namespace", f"berth-{within.slug}-{slug}"[:63].rstrip("-"))
    fields.setdefault("least_isolation", Isolation.NONE)
    return Project.objects.create(tenant=within, name=name, created_at=AT, **fields)


def member(of: User, role: Role, *, at: Tenant | Project | None = None) -> Member:
    """`at` None is the whole fleet."""
    return Member.objects.create(
        user=of,
        role=role,
        tenant=at if isinstance(at, Tenant) else None,
        project=at if isinstance(at, Project) else None,
    )


def token(of: User, *scopes: str, **fields: Any) -> Token:
    """A live token whose secret is SECRET and its number."""
    number = next(_numbers)
    fields.setdefault("created_at", datetime.now(UTC) - timedelta(hours=1))
    fields.setdefault("expires_at", datetime.now(UTC) + timedelta(days=30))
    made = Token(user=of, name=f"token {number}", scopes=list(scopes or ["read"]), **fields)
    made.digest = hashlib.sha256(secret_of(made).encode()).hexdigest()
    made.save()
    return made


def secret_of(made: Token) -> str:
    return f"{SECRET[:-32]}{made.id.hex}"


def bearer(made: Token) -> dict[str, str]:
    """Headers of a request by that token."""
    return {"Authorization": f"Bearer berth_{made.id.hex}_{secret_of(made)}"}


def flavor(name: str = "h100-80gb", kind: FlavorKind = FlavorKind.WHOLE, **fields: Any) -> Flavor:
    if kind is not FlavorKind.CPU:
        fields.setdefault("model", "NVIDIA-H100-80GB-HBM3")
    if kind is FlavorKind.SHARE:
        fields.setdefault("isolation", Isolation.NONE)
    return Flavor.objects.create(name=name, kind=kind, **fields)


def mig_flavor(name: str = "h100-1g.10gb", profile: str = "1g.10gb") -> Flavor:
    return flavor(name, FlavorKind.MIG, profile=profile)


def cpu_flavor(name: str = "cpu") -> Flavor:
    return flavor(name, FlavorKind.CPU)


def cluster(name: str = "north", **fields: Any) -> Cluster:
    fields.setdefault("state", ClusterState.ACTIVE)
    return Cluster.objects.create(name=name, created_at=AT, seen_at=AT, **fields)


def probe(of: Cluster, *verdicts: Verdict, **fields: Any) -> ClusterProbe:  # Any: model fields
    """One that has ended, of the worst of the verdicts of its steps; without any all works."""
    steps = [
        {"name": f"step {number}", "verdict": verdict.value, "said": f"it {verdict.value}"}
        for number, verdict in enumerate(verdicts or (Verdict.WORKS,), start=1)
    ]
    worst = max(verdicts, default=Verdict.WORKS, key=list(Verdict).index)
    fields = {"asked_at": AT, "asked_by": "oz", "tries": 1, "began_at": AT} | fields
    fields = {"ended_at": AT, "verdict": worst, "steps": steps, "credential_version": 1} | fields
    return ClusterProbe.objects.create(cluster=of, **fields)


def inspection(of: Placement) -> Inspection:
    """One that has ended and told nothing."""
    return Inspection.objects.create(placement=of, asked_at=AT, asked_by="ben", ended_at=AT)


def close(
    of: Cluster, model: str = "", state: QueueState = QueueState.HELD, note: str = "New racks."
) -> HardwareQueue:
    """Hold, or drain, the cluster, or its pool of the model."""
    return HardwareQueue.objects.create(
        cluster=of,
        model=model,
        queue_state=state,
        queue_note=note,
        queue_changed_at=AT,
        queue_changed_by="oz",
    )


def node(within: Cluster, name: str = "n1", *, gpus: int = 8, **fields: Any) -> Node:
    """A ready node with that many whole H100 devices, 96 cores and 1 TiB."""
    model = fields.pop("model", "NVIDIA-H100-80GB-HBM3")
    mode = fields.pop("mode", DeviceMode.WHOLE)
    fields = {"ready": True, "cpu_milli": 96_000, "memory_mib": 1024 * 1024} | fields
    made = Node.objects.create(cluster=within, name=name, hostname=name, **fields)
    for ordinal in range(gpus):
        device(made, ordinal, model=model, mode=mode)
    return made


def device(on: Node, ordinal: int = 0, **fields: Any) -> Device:
    fields = {"model": "NVIDIA-H100-80GB-HBM3", "memory_mib": 81_920} | fields
    return Device.objects.create(node=on, ordinal=ordinal, **fields)


def foreign_span(of: Device, start: int = 0, end: int = 1000) -> ForeignSpan:
    return ForeignSpan.objects.create(device=of, span=NumericRange(start, end))


def device_slice(of: Device, profile: str, start: int, end: int) -> DeviceSlice:
    return DeviceSlice.objects.create(device=of, profile=profile, span=NumericRange(start, end))


def quota(of: Project, what: Flavor, nominal_milli: int = 8000, **fields: Any) -> Quota:
    return Quota.objects.create(project=of, flavor=what, nominal_milli=nominal_milli, **fields)


def rate(of: Flavor, price: str = "2.50", **fields: Any) -> Rate:
    fields.setdefault("during", DateTimeTZRange(AT - timedelta(days=365), None))
    return Rate.objects.create(flavor=of, price_per_hour=Decimal(price), currency="EUR", **fields)


def quota_request(of: Project, what: Flavor, by: User, **fields: Any) -> QuotaRequest:
    fields = {"nominal_milli": 16_000, "reason": "A larger model.", "requested_at": AT} | fields
    return QuotaRequest.objects.create(project=of, flavor=what, requested_by=by, **fields)


def defragmentation(of: Cluster, **fields: Any) -> Defragmentation:
    """Planned for an hour from now on; Any: model fields."""
    now = datetime.now(UTC)
    window = {"starts_at": now + timedelta(hours=1), "ends_at": now + timedelta(hours=2)}
    values = {"budget_s": 3600, "planned_by": "oz", "planned_at": now} | window | fields
    return Defragmentation.objects.create(cluster=of, **values)


def node_pool(of: Cluster, name: str = "h100s", **fields: Any) -> NodePool:
    """Of which four nodes can come; Any: model fields."""
    values = {"limits": {"nodes": 4}, "room_count": 4} | fields
    return NodePool.objects.create(cluster=of, name=name, **values)


def recut(of: Node, **fields: Any) -> Recut:
    """Planned for an hour from now on, into sevenths; Any: model fields."""
    now = datetime.now(UTC)
    values = {
        "wanted": [{"1g.10gb": 7}] * of.devices.count(),
        "before": [{}] * of.devices.count(),
        "config": "berth-berth-0123456789ab",
        "mode": "wait",
        "planned_by": "oz",
        "planned_at": now,
        "starts_at": now + timedelta(hours=1),
        "ends_at": now + timedelta(hours=2),
        "since": now,
    }
    return Recut.objects.create(node=of, **(values | fields))


def reservation(of: Project | Tenant, what: Flavor, by: User, **fields: Any) -> Reservation:
    """Of one unit, now; Any: model fields."""
    now = datetime.now(UTC)
    window = {"starts_at": now, "ends_at": now + timedelta(hours=1)}
    values = {"amount_milli": 1000, "made_by": by, "made_at": now} | window | fields
    return Reservation.objects.create(**{type(of).__name__.lower(): of}, flavor=what, **values)


def budget(of: Project, **fields: Any) -> Budget:
    """For each quarter, which nothing waits for; Any: model fields."""
    values = {"period": Period.QUARTER, "limit_h": 1000, "mode": BudgetMode.WARN} | fields
    return Budget.objects.create(project=of, **values)


def workload(
    within: Project,
    by: User,
    accepted: Sequence[Flavor],
    name: str = "train",
    *,
    state: State = State.PENDING,
    pods: int = 1,
    gpus: int = 1,
    **fields: Any,
) -> Workload:
    """A workload with one pod set, in `state` (no placements: see `place`)."""
    fields = {"priority_class": "normal", "submitted_at": AT} | fields
    fields.setdefault("priority", PRIORITY_CLASSES[str(fields["priority_class"])])
    if state in TERMINAL:
        fields.setdefault("ended_at", AT + timedelta(hours=1))
    made = Workload.objects.create(
        project=within, submitted_by=by, name=name, state=state.value, **fields
    )
    pod_set = PodSet.objects.create(
        workload=made,
        position=0,
        name="main",
        count=pods,
        min_count=pods,
        cpu_milli=4000,
        memory_mib=16_384,
        gpu_count=gpus,
        image="registry.example.org/train:1",
    )
    for position, each in enumerate(accepted):
        PodSetFlavor.objects.create(pod_set=pod_set, flavor=each, position=position)
    WorkloadEvent.objects.create(workload=made, at=AT, kind="state", after=State.PENDING.value)
    return made


def array(
    within: Project, by: User, accepted: Sequence[Flavor], size: int = 2, **fields: Any
) -> WorkloadArray:
    """Its elements wait. Any: model fields."""
    made = WorkloadArray.objects.create(
        project=within,
        submitted_by=by,
        size=size,
        **({"name": "sweep", "submitted_at": AT} | fields),
    )
    for index in range(size):
        name = f"{made.name}[{index}]"
        workload(within, by, accepted, name, array=made, array_index=index)
    return made


def gate(of: Workload | WorkloadArray, owner: User, **fields: Any) -> Gate:
    """One that waits. Any: model fields."""
    work = {"workload": of} if isinstance(of, Workload) else {"array": of}
    given = {"name": "data", "kind": GateKind.DATA, "created_at": AT} | fields
    return Gate.objects.create(project=of.project, owner=owner, **work, **given)


def standing_gate(of: Project, owner: User, **fields: Any) -> StandingGate:
    """Any: model fields."""
    given = {"name": "data", "kind": GateKind.DATA, "created_at": AT} | fields
    return StandingGate.objects.create(project=of, owner=owner, **given)


def place(
    of: Workload, on: Node, what: Flavor, *, amount_milli: int = 1000, rank: int = 0, **fields: Any
) -> Placement:
    """One live placement on the node, in the workload's newest live attempt, without spans."""
    attempt = of.attempts.filter(ended_at__isnull=True).first() or Attempt.objects.create(
        workload=of, number=of.attempts.count() + 1, cluster=on.cluster, epoch=1, created_at=AT
    )
    return Placement.objects.create(
        workload=of,
        attempt=attempt,
        pod_set=of.pod_sets.get(),
        rank=rank,
        node=on,
        flavor=what,
        amount_milli=amount_milli,
        cpu_milli=4000,
        memory_mib=16_384,
        pod_name=f"w{of.id.hex[-12:]}-{attempt.number}-{rank}",
        created_at=AT,
        **fields,
    )


def span(of: Placement, what: Device, start: int = 0, end: int = 1000) -> PlacementSpan:
    return PlacementSpan.objects.create(placement=of, device=what, span=NumericRange(start, end))


def usage(of: Placement, *, hours: float = 1, start: datetime = AT) -> UsageInterval:
    """What the placement held from `start` on."""
    return UsageInterval.objects.create(
        project=of.workload.project,
        flavor=of.flavor,
        cluster=of.node.cluster,
        user=of.workload.submitted_by,
        placement_id=of.id,
        workload_id=of.workload_id,
        amount_milli=of.amount_milli,
        during=DateTimeTZRange(start, start + timedelta(hours=hours)),
    )


def charge(of: UsageInterval, at: Rate, amount: str = "2.50") -> Charge:
    return Charge.objects.create(
        usage=of,
        project=of.project,
        flavor=of.flavor,
        workload_id=of.workload_id,
        rate=at,
        amount=Decimal(amount),
        currency=at.currency,
        ended_at=of.during.upper,
    )


def estimate(of: Workload, *, p50_s: int | None = 600, p90_s: int | None = 1800) -> Estimate:
    return Estimate.objects.create(
        workload=of, as_of=AT, p50_s=p50_s, p90_s=p90_s, basis="plan", passes=64
    )


def cycle(*, at: datetime) -> CycleRecord:
    counts = ("pending", "holding", "admitted", "refused", "preempted")
    spent = dict.fromkeys((*(f"{each}_count" for each in counts), "load_ms", "plan_ms"), 0)
    return CycleRecord.objects.create(shard="fleet", epoch=1, at=at, apply_ms=0, **spent)


def submission(within: Project, **fields: Any) -> dict[str, Any]:
    """The body of POST /workloads for one pod with one H100."""
    pod_set = {
        "name": "main",
        "count": 1,
        "cpu_milli": 4000,
        "memory_mib": 16_384,
        "gpu_count": 1,
        "flavors": ["h100-80gb"],
        "image": "registry.example.org/train:1",
    } | fields.pop("pod_set", {})
    return {"project": str(within.id), "name": "train", "pod_sets": [pod_set]} | fields
