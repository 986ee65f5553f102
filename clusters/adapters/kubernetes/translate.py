"""Pure: a raw Pod as a PodReport, and lists of raw objects as reports."""

from collections import Counter
from collections.abc import Callable, Iterable

from clusters.adapters.kubernetes.caught import caught
from clusters.adapters.kubernetes.checks import (
    Json,
    Malformed,
    count,
    label_words,
    mapping,
    moment,
    objects,
    optional_word,
    word,
)
from clusters.adapters.kubernetes.confinement import DEFAULT_REQUESTS
from clusters.adapters.kubernetes.failures import printable
from clusters.adapters.kubernetes.names import DEVICES, Names
from clusters.adapters.kubernetes.nodes import node
from clusters.adapters.kubernetes.quantities import BadQuantity, mebibytes, milli, pieces
from clusters.port import PodPhase, PodReport

__all__ = ["Malformed", "node", "owner", "pod", "readable"]

MOST_ATTEMPTS = 10**6
MOST_RANKS = 10**6
LONGEST_UID = 64
MOST_RESOURCES = 64
"""Of those of devices, which one pod asks for."""
_ENDED = {"Succeeded": PodPhase.SUCCEEDED, "Failed": PodPhase.FAILED}


def readable[Report](
    bodies: Iterable[object], translate: Callable[[Json], Report]
) -> tuple[list[Report], list[str]]:
    """The reports of those objects that make sense; of each of the others its name and why not."""
    reports: list[Report] = []
    left_out: list[str] = []
    for body in bodies:
        try:
            if not isinstance(body, dict):
                raise Malformed("it is no object")
            reports.append(translate(body))
        except Malformed as error:
            metadata = body.get("metadata") if isinstance(body, dict) else None
            name = metadata.get("name") if isinstance(metadata, dict) else None
            named = name if isinstance(name, str) else "one without a name"
            left_out.append(f"{printable(named, longest=80)}: {error}")
    return reports, left_out


def pod(body: Json, *, names: Names) -> PodReport:
    """The report of one pod, ours or foreign."""
    metadata, spec, status = (mapping(body, key) for key in ("metadata", "spec", "status"))
    phase, reason = _phase(spec, status)
    container, state = main_container(spec, status)
    ended = mapping(state, "terminated")
    started_at = moment(ended or mapping(state, "running"), "startedAt")
    # All: whoever gives a pod many more must not push Berth's own out.
    labels = label_words(metadata)
    installation, workload, attempt, rank = owner(labels, names=names)
    says = caught(body, labels=labels, names=names)
    # Made anew in a namespace that is confined by then, it has them, and is to be the same.
    resources = _requests(spec, unsaid=DEFAULT_REQUESTS if says else {})
    if not (workload or says):
        # Its claim says which devices these are.
        claimed = mapping(status, "extendedResourceClaimStatus")
        for each in objects(claimed, "requestMappings"):
            resources.pop(optional_word(each, "resourceName"), None)
    exit_code = ended.get("exitCode")
    return PodReport(
        namespace=word(metadata, "namespace"),
        name=word(metadata, "name"),
        uid=word(metadata, "uid", longest=LONGEST_UID),
        resource_version=word(metadata, "resourceVersion"),
        phase=phase,
        node=optional_word(spec, "nodeName"),
        installation=installation,
        workload=workload,
        attempt=attempt,
        rank=rank,
        created_at=moment(metadata, "creationTimestamp"),
        started_at=started_at,
        finished_at=moment(ended, "finishedAt") if phase.ended else None,
        exit_code=exit_code if type(exit_code) is int and abs(exit_code) < 2**31 else None,
        reason=printable(
            reason or _disruption(status, phase) or _container_reason(container, ended)
        ),
        deleting=metadata.get("deletionTimestamp") is not None,
        cpu_milli=resources.pop("cpu", 0),
        memory_mib=resources.pop("memory", 0),
        resources=tuple(sorted(resources.items())),
        caught=says,
    )


def _phase(spec: Json, status: Json) -> tuple[PodPhase, str]:
    """The phase, and the pod's own reason for it ("" when only its container knows)."""
    said = status.get("phase")
    reason = _text(status, "reason")
    if said in ("Succeeded", "Failed"):
        return _ENDED[said], reason
    if said == "Running":
        return PodPhase.RUNNING, reason
    if spec.get("nodeName"):
        return PodPhase.SCHEDULED, reason
    if objects(spec, "schedulingGates"):
        return PodPhase.GATED, reason
    for condition in objects(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return PodPhase.UNSCHEDULABLE, _text(condition, "message") or "Unschedulable"
    return PodPhase.WAITING, reason


def _disruption(status: Json, phase: PodPhase) -> str:
    """By whom a pod that failed was made to: PreemptionByScheduler, DeletionByTaintManager, ..."""
    if phase is not PodPhase.FAILED:
        return ""
    for condition in objects(status, "conditions"):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return _text(condition, "reason")
    return ""


def _text(body: Json, key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def main_container(spec: Json, status: Json) -> tuple[Json, Json]:
    """The status and the state of the pod's first container, {} while it has none."""
    containers = objects(spec, "containers")
    statuses = objects(status, "containerStatuses")
    main = containers[0].get("name") if containers else None
    found = next((item for item in statuses if item.get("name") == main), {})
    return found, mapping(found, "state")


def _container_reason(container: Json, ended: Json) -> str:
    """OOMKilled and the like; why it waits (ImagePullBackOff: ...); "" when all is well."""
    if ended:
        reason = _text(ended, "reason")
        return "" if reason == "Completed" else reason
    waiting = mapping(mapping(container, "state"), "waiting")
    reason, message = _text(waiting, "reason"), _text(waiting, "message")
    return f"{reason}: {message}" if message else reason


def owner(labels: dict[str, str], *, names: Names) -> tuple[str, str, int, int]:
    """Installation, workload, attempt, rank; workload "" unless the pod is this installation's."""
    installation = labels.get(names.label_installation, "")
    if installation != names.installation:
        return installation, "", 0, 0
    workload = labels.get(names.label_workload, "")
    try:
        attempt = count(labels.get(names.label_attempt), most=MOST_ATTEMPTS)
        rank = count(labels.get(names.label_rank), most=MOST_RANKS)
    except Malformed:
        return installation, "", 0, 0  # nobody's: it only takes up room
    return installation, workload, attempt, rank


def _requests(spec: Json, *, unsaid: Json) -> Counter[str]:
    """What the pod holds: cpu in milli, memory in MiB, others in pieces. Its containers count with
    what is `unsaid` for what they do not say themselves.

    As the scheduler counts. Sidecars (init containers that restart) run beside the containers, and
    beside the init containers that come after them; so it is the sum of containers and sidecars,
    or the largest init container with the sidecars before it, if that is more. What the pod asks
    for as a whole goes before that, and what its runtime needs comes on top.
    """
    sidecars: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    for container in objects(spec, "initContainers"):
        held = _together(sidecars + _asked(container, unsaid))
        starting = _together(starting | held)
        if container.get("restartPolicy") == "Always":
            sidecars = held
    running = sidecars
    for container in objects(spec, "containers"):
        running = _together(running + _asked(container, unsaid))
    # The API server fills in requests where a pod has limits alone.
    whole = _amounts(mapping(mapping(spec, "resources"), "requests"))
    return Counter({**(running | starting), **whole}) + _amounts(mapping(spec, "overhead"))


def _asked(container: Json, unsaid: Json) -> Counter[str]:
    resources = mapping(container, "resources")
    # A limit without a request counts as the request.
    said = {**mapping(resources, "limits"), **mapping(resources, "requests")}
    return _amounts({**unsaid, **said})


def _amounts(asked: Json) -> Counter[str]:
    try:
        amounts = Counter({n: _amount(n, value) for n, value in asked.items() if _counts(n)})
    except BadQuantity as error:
        raise Malformed(str(error)) from None
    return _together(amounts)


def _together(amounts: Counter[str]) -> Counter[str]:
    """Of a pod, or a part of it. Each sum is looked at: those of all containers take minutes."""
    if len(amounts) > MOST_RESOURCES:
        raise Malformed(f"more than {MOST_RESOURCES} resources")
    return amounts


def _counts(name: str) -> bool:
    return name in ("cpu", "memory") or (name.startswith(DEVICES) and len(name) < 300)


def _amount(name: str, value: object) -> int:
    if not isinstance(value, str):
        raise Malformed(f"{name} is no quantity")
    if name == "cpu":
        return milli(value, up=True)
    return mebibytes(value, up=True) if name == "memory" else pieces(value)
