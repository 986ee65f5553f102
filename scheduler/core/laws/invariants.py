"""What must hold of every plan, checked apart from the code that made it.

Tests ask this of random snapshots. It knows the rules and the tables of MIG, and shares no
arithmetic with the planner.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.core.laws.budgets import budgets
from scheduler.core.laws.caps import caps
from scheduler.core.laws.counted import counted
from scheduler.core.laws.elastic import begun, elastic
from scheduler.core.laws.enforce import enforced, obeyed
from scheduler.core.laws.idle import freed, going
from scheduler.core.laws.moves import landed, moves
from scheduler.core.laws.shares import is_as_charged, shares
from scheduler.core.laws.tree import Law, add_models, firm, reclaimers, reclaims, usage
from scheduler.core.laws.used_up import used_up
from scheduler.core.node import mig
from scheduler.core.node.isolation import is_enough, stricter
from scheduler.core.plan import Admit, Place, Plan
from scheduler.core.quota.cohorts import Cohorts
from scheduler.core.quota.portions import as_given
from scheduler.core.reasons import PreemptRule, ReasonCode
from scheduler.core.snapshot import (
    DeviceMode,
    DeviceView,
    FlavorKind,
    FlavorView,
    HeldView,
    Isolation,
    PendingView,
    PodSetView,
    Snapshot,
)
from scheduler.core.units import (
    ONE_MILLI,
    DeviceId,
    FlavorId,
    Span,
)


def violations(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """One sentence for each broken law, ascending; () for a lawful plan.

    What a snapshot breaks already (two holders on one span, usage over a quota that was cut) is
    not told unless the plan adds to it.
    """
    found = {*freed(snapshot, plan)}
    snapshot = going(snapshot, plan)
    found |= {*used_up(snapshot, plan)}
    snapshot, plan = obeyed(snapshot, plan, PreemptRule.BUDGET)
    found |= {*enforced(snapshot, plan)}
    snapshot, plan = obeyed(snapshot, plan)
    found |= {
        *_decided_once(snapshot, plan),
        *_gangs(snapshot, plan),
        *_rooms(snapshot, plan),
        *quotas(snapshot, plan),
        *caps(snapshot, plan),
        *budgets(snapshot, plan),
        *firm(snapshot, plan),
        *reclaimers(snapshot, plan),
        *_evictions(snapshot, plan),
        *moves(snapshot, plan),
        *elastic(snapshot, plan),
    }
    if plan.landings:
        then, made = landed(snapshot, plan)
        broken = (*_gangs(then, made), *_rooms(then, made), *quotas(then, made))
        found |= {f"once all have landed: {each}" for each in broken}
    return tuple(sorted(found))


def _decided_once(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    decided = Counter(a.workload for a in plan.admits)
    decided.update(id for hold in plan.holds for id in hold.workloads)
    pending = {p.id: p for p in snapshot.pending}
    for workload in pending.keys() - decided.keys():
        yield f"pending {workload} is not decided"
    for workload, times in decided.items():
        if workload not in pending:
            yield f"{workload} is decided and not pending"
        elif times > 1:
            yield f"{workload} is decided {times} times"


def _gangs(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    pending = {p.id: p for p in snapshot.pending}
    clusters = {c.id: c for c in snapshot.clusters}
    nodes = {c.id: {n.id for n in c.nodes} for c in snapshot.clusters}
    for admit in plan.admits:
        waiting, cluster = pending.get(admit.workload), clusters.get(admit.cluster)
        if waiting is None:
            continue
        if cluster is None or not cluster.usable:
            yield f"{waiting.id} starts in cluster {admit.cluster}, which takes nothing new"
        if waiting.clusters and admit.cluster not in waiting.clusters:
            yield f"{waiting.id} starts in cluster {admit.cluster}, which it does not accept"
        if waiting.not_before > max(snapshot.at, 0):
            yield f"{waiting.id} starts before it may"
        if not {p.node for p in admit.places} <= nodes.get(admit.cluster, set()):
            yield f"{waiting.id} is placed outside of cluster {admit.cluster}"
        yield from _gang(snapshot, waiting, admit)
        yield from _apart(snapshot, waiting, admit)


def _gang(snapshot: Snapshot, waiting: PendingView, admit: Admit) -> Iterator[str]:
    flavors = {flavor.id: flavor for flavor in snapshot.flavors}
    own = (q.least_isolation for q in snapshot.queues if q.project == waiting.project)
    least = next(own, Isolation.NONE)
    if [p.rank for p in admit.places] != list(range(len(admit.places))) or not admit.places:
        yield f"the ranks of {waiting.id} do not count from 0"
    at = 0
    for pod_set in waiting.pod_sets:
        count = sum(1 for p in admit.places if p.pod_set == pod_set.id)
        of_set = admit.places[at : at + count]
        at += count
        if not pod_set.min_count <= count <= pod_set.count:
            yield f"{waiting.id} starts {count} pods of {pod_set.id}"
        if {p.pod_set for p in of_set} - {pod_set.id}:
            yield f"the ranks of {waiting.id} do not follow its pod sets"
        if len({p.flavor for p in of_set}) > 1:
            yield f"the pods of {pod_set.id} have several flavors"
        if any(not _as_asked(place, pod_set, flavors) for place in of_set):
            yield f"a pod of {pod_set.id} does not get what it asks for"
        for given in {flavors[p.flavor].isolation for p in of_set if p.flavor in flavors}:
            wanted = stricter(least, pod_set.least_isolation)
            if not is_enough(given=given, least=wanted):
                yield f"the pods of {pod_set.id} are isolated by {given}, not {wanted}"
    if at != len(admit.places):
        yield f"{waiting.id} starts pods of unknown pod sets"


def _apart(snapshot: Snapshot, waiting: PendingView, admit: Admit) -> Iterator[str]:
    """What has to be in one domain is on nodes that agree from the outermost level down to it:
    all pods, or those of a pod set, or each group of them."""
    if waiting.topology is not None and waiting.topology.required:
        level = waiting.topology.level
        yield from _one_domain(snapshot, level, waiting.id, admit.places)
    for pod_set in waiting.pod_sets:
        if pod_set.topology is not None and pod_set.topology.required:
            of_set = [place for place in admit.places if place.pod_set == pod_set.id]
            size = pod_set.topology.group_size or len(of_set) or 1
            for at in range(0, len(of_set), size):
                who = f"{waiting.id} in {pod_set.id} from pod {at} on"
                yield from _one_domain(
                    snapshot, pod_set.topology.level, who, of_set[at : at + size]
                )


def _one_domain(
    snapshot: Snapshot, level: str, who: str, places: Sequence[Place]
) -> Iterator[str]:
    depth = snapshot.levels.index(level) + 1 if level in snapshot.levels else 0
    on = {place.node for place in places}
    paths = {n.topology[:depth] for c in snapshot.clusters for n in c.nodes if n.id in on}
    if len(paths) > 1:
        yield f"{who} is placed in {len(paths)} domains of level {level}"
    if not depth or any(len(path) < depth or not path[-1] for path in paths):
        yield f"{who} is placed where the {level} is unknown"


def _as_asked(place: Place, pod_set: PodSetView, flavors: Mapping[FlavorId, FlavorView]) -> bool:
    if place.flavor in flavors:
        pod_set = as_given(pod_set=pod_set, flavor=flavors[place.flavor])
    amount = pod_set.gpu_count * pod_set.gpu_milli if pod_set.gpu_count else pod_set.cpu_milli
    return (
        place.flavor in pod_set.flavors
        and place.amount_milli == amount
        and place.cpu_milli == pod_set.cpu_milli
        and place.memory_mib == pod_set.memory_mib
    )


def _rooms(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """No span twice, legal spans only, no more cores and memory than there are."""
    flavors = {f.id: f for f in snapshot.flavors}
    devices = {d.id: d for c in snapshot.clusters for n in c.nodes for d in n.devices}
    placed = [place for _, places in begun(plan) for place in places]
    held = [p for holding in snapshot.holding for p in holding.placements]
    for place in placed:
        flavor = flavors.get(place.flavor)
        if flavor is None:
            yield f"a pod of {place.pod_set} has the unknown flavor {place.flavor}"
        else:
            yield from _spans(place, flavor, devices)
    taken: dict[DeviceId, list[tuple[Span, bool]]] = {}
    for new, holders in ((True, placed), (False, held)):
        for holder in holders:
            for device, span in holder.spans:
                taken.setdefault(device, []).append((span, new))
    for device, spans in taken.items():
        yield from _overlaps(device, sorted(spans))
    yield from shares(snapshot, devices, placed, held)
    yield from counted(snapshot, placed, held)
    yield from _media(snapshot, [*placed, *held], placed)
    yield from _cores_and_memory(snapshot, placed, held)


def _overlaps(device: DeviceId, spans: list[tuple[Span, bool]]) -> Iterator[str]:
    furthest, of_new = 0, False
    for span, new in spans:
        if span.start < furthest and (new or of_new):
            yield f"two holders overlap on device {device} at {span.start}"
        if span.end > furthest:
            furthest, of_new = span.end, new


def _spans(place: Place, flavor: FlavorView, devices: dict[DeviceId, DeviceView]) -> Iterator[str]:
    where = f"a pod of {place.pod_set} on node {place.node}"
    if flavor.kind is FlavorKind.CPU:
        right = not place.spans
    elif flavor.kind is FlavorKind.SHARE:
        right = is_as_charged(place, devices)
    else:
        right = len(place.spans) * ONE_MILLI == place.amount_milli
    if not right:
        yield f"{where} has other spans than it is charged for"
    for device_id, span in place.spans:
        device = devices.get(device_id)
        if device is None or not device.usable:
            yield f"{where} is on device {device_id}, which takes nothing new"
        elif device.model != flavor.model or not _legal(device, flavor, span):
            yield f"{where} has an illegal span {span.start}-{span.end} on device {device_id}"


def _legal(device: DeviceView, flavor: FlavorView, span: Span) -> bool:
    if flavor.kind is FlavorKind.MIG:
        if device.mode is DeviceMode.MIG_STATIC:
            return any(s.profile == flavor.profile and s.span == span for s in device.slices)
        legal = mig.legal_spans(model=device.model, profile=flavor.profile)
        return device.mode is DeviceMode.MIG_DYNAMIC and span in legal
    if device.mode is not DeviceMode.WHOLE:
        return False
    if flavor.kind is FlavorKind.WHOLE:
        return (span.start, span.end) == (0, ONE_MILLI)
    return device.shares is flavor.isolation


def _media(
    snapshot: Snapshot, holders: Iterable[Place | HeldView], placed: Iterable[Place]
) -> Iterator[str]:
    """At most one slice with media engines on a device that is cut on demand."""
    media = {f.id for f in snapshot.flavors if f.profile.endswith(mig.MEDIA)}
    dynamic = {
        d.id
        for c in snapshot.clusters
        for n in c.nodes
        for d in n.devices
        if d.mode is DeviceMode.MIG_DYNAMIC
    }
    new = {d for place in placed if place.flavor in media for d, _ in place.spans}
    counts = Counter(d for holder in holders if holder.flavor in media for d, _ in holder.spans)
    for device, count in counts.items():
        if count > 1 and device in dynamic and device in new:
            yield f"device {device} has {count} slices with media engines"


def _cores_and_memory(
    snapshot: Snapshot, placed: Iterable[Place], held: Iterable[HeldView]
) -> Iterator[str]:
    touched = {place.node for place in placed}
    cores: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    holders: list[Place | HeldView] = [*placed, *held]
    for holder in holders:
        cores[holder.node] += holder.cpu_milli
        memory[holder.node] += holder.memory_mib
    for cluster in snapshot.clusters:
        for node in cluster.nodes:
            if node.id not in touched:
                continue
            if not node.usable:
                yield f"node {node.id} takes nothing new"
            if cores[node.id] > node.cpu_milli or memory[node.id] > node.memory_mib:
                yield f"node {node.id} has too few cores or too little memory"


def quotas(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """No member of the tree is brought beyond what it has and may borrow, whatever has room."""
    cohorts = Cohorts(cohorts=snapshot.cohorts, queues=snapshot.queues)
    projects = {p.id: p.project for p in snapshot.pending}
    projects |= {h.id: h.project for h in snapshot.holding}
    before = usage(snapshot)
    after = Counter(before)
    for workload, places in begun(plan):
        for place in places:
            if workload in projects:
                after[projects[workload], place.flavor] += place.amount_milli
    for by in (before, after):
        add_models(snapshot, by)
    grown = {key for key, amount in after.items() if amount > before[key]}
    for project, flavor in sorted(grown):
        number = cohorts.number.get(project)
        if number is None or flavor not in cohorts.quotas[number]:
            yield f"project {project} has no quota of {flavor}"
    for flavor in sorted({flavor for _, flavor in grown}):
        then, now = Law(cohorts, flavor, before), Law(cohorts, flavor, after)
        for member in range(len(cohorts.parents)):
            used, most = now.used(member), now.most(member)
            if most is not None and used > most and used > then.used(member):
                yield f"{cohorts.names[member]} holds {used} of {flavor}, and may hold {most}"


def _evictions(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    pending = {p.id: p for p in snapshot.pending}
    holding = {h.id: h for h in snapshot.holding}
    coming = ReasonCode.WAITING_FOR_PREEMPTION
    waits = {id for id, reason in plan.reasons().items() if reason.code is coming}
    granted = {queue.project: queue.min_run_time_s for queue in snapshot.queues}
    for evicted, times in Counter(p.victim for p in plan.preempts).items():
        if times > 1:
            yield f"{evicted} is evicted {times} times"
    for preempt in plan.preempts:
        if preempt.rule is PreemptRule.BETTER:
            continue  # for nobody: see `laws.moves`
        victim, by = holding.get(preempt.victim), pending.get(preempt.preemptor)
        if victim is None or by is None or by.id not in waits:
            yield f"{preempt.victim} is evicted for {preempt.preemptor}, which does not wait"
            continue
        if not victim.preemptible or victim.releasing:
            yield f"{victim.id} may not be evicted"
        least_s = granted.get(victim.project, 0)
        since = victim.admitted_at if victim.started_at is None else victim.started_at
        if snapshot.at < since + least_s and least_s:
            yield f"{victim.id} is evicted before it has run for {least_s} s"
        own = victim.project == by.project
        if preempt.rule is PreemptRule.PRIORITY and not (own and victim.priority < by.priority):
            yield f"{victim.id} is evicted by priority and is not of lower priority there"
        if preempt.rule is PreemptRule.RECLAIM and own:
            yield f"{victim.id} is reclaimed by its own project"
    yield from reclaims(snapshot, plan, waits)
