"""A placement → the pod that a cluster is asked for. Pure."""

from dataclasses import dataclass
from uuid import UUID

from clusters.claiming import GivenDevices
from clusters.port import PodReport, PodRequest
from clusters.published import OF_CLASS
from scheduler.core.snapshot import FlavorKind, Isolation
from scheduler.loop.pods.claims import Pod

RENDEZVOUS_PORT = 29500
MIG = "nvidia.com/mig-"


@dataclass(frozen=True, slots=True)
class Charged:
    """What a pod in a certain place is charged for, and how its node calls that: of a Pod that
    is none yet. `pins` is whether its devices are claimed one by one."""

    cpu_milli: int
    memory_mib: int
    flavor_kind: str
    profile: str
    gpu_count: int
    amount_milli: int
    share_replicas: int
    share_resource: str
    gpu_resource: str
    mig_single: bool
    pins: bool


def is_gang(most: int) -> bool:
    """A workload of up to so many pods: they find each other by a service."""
    return most > 1


def service_name(workload_id: UUID, attempt: int) -> str:
    """The headless service under which a gang's pods find each other. Each attempt has its own,
    so that the end of one takes nothing from the next."""
    return f"w{workload_id.hex}-{attempt}"


def pod_request(pod: Pod) -> PodRequest:
    """The pod as the cluster's own vocabulary has it; a gang's pods get rendezvous variables, and
    how many they may be where that changes while they run; an array's their element's index."""
    gang = is_gang(pod.most)
    subdomain = service_name(pod.workload_id, pod.attempt) if gang else ""
    env = dict(pod.env)
    if gang:
        first = pod.name.removesuffix(f"-{pod.rank}") + "-0"
        env |= {
            "MASTER_ADDR": f"{first}.{subdomain}.{pod.namespace}.svc",
            "MASTER_PORT": str(RENDEZVOUS_PORT),
            "WORLD_SIZE": str(pod.peers),
            "RANK": str(pod.rank),
        }
    if pod.array_index is not None:
        env |= {
            "BERTH_ARRAY_INDEX": str(pod.array_index),
            "BERTH_ARRAY_SIZE": str(pod.array_size),
        }
    if pod.least < pod.most:
        env |= {"BERTH_MIN_PODS": str(pod.least), "BERTH_MAX_PODS": str(pod.most)}
    env |= _memory_limits(pod)
    return PodRequest(
        namespace=pod.namespace,
        name=pod.name,
        workload=str(pod.workload_id),
        attempt=pod.attempt,
        rank=pod.rank,
        image=pod.image,
        command=pod.command,
        args=pod.args,
        env=tuple(sorted(env.items())),
        cpu_milli=pod.cpu_milli,
        memory_mib=pod.memory_mib,
        resources=_resources(pod),
        run_time_limit_s=pod.run_time_limit_s,
        subdomain=subdomain,
        grace_s=pod.grace_s,
        notice=pod.notice_s > 0,
        tolerates=pod.gpu_resource,
        priority=pod.priority,
        pins=pod.pins,
        consumes=pod.consumes,
    )


def given_devices(pod: Pod, found: PodReport) -> GivenDevices:
    """What the pod of others that was taken for it is to claim."""
    return GivenDevices(
        namespace=found.namespace,
        name=found.name,
        uid=found.uid,
        resource_version=found.resource_version,
        workload=str(pod.workload_id),
        attempt=pod.attempt,
        rank=pod.rank,
        prefix=f"{service_name(pod.workload_id, pod.attempt)}-{pod.rank}",
        requests=pod.requests,
        pins=pod.pins,
    )


def differs(pod: Pod | Charged, found: PodReport) -> str:
    """How a pod that is there asks for something else than it is charged for, "" when not. What no
    placement is charged for, such as network cards, is no difference."""
    charged = dict(_resources(pod))
    if isinstance(pod, Pod) and pod.asks is not None:
        # By classes of devices: what these stand for was looked at when it was taken in.
        charged = dict(pod.asks)
    devices = {name for name, _ in found.resources if name.startswith((MIG, OF_CLASS))}
    devices |= {pod.gpu_resource, pod.share_resource, *charged}
    asked = {name: count for name, count in found.resources if name in devices and count}
    claims = {claim for claim, _ in found.caught.claims} if found.caught else set()
    charged_for = {each.claim for each in pod.requests} if isinstance(pod, Pod) else claims
    if claims != charged_for:
        told, other = (", ".join(sorted(each)) or "none" for each in (claims, charged_for))
        return f"{found.name} claims devices by {told}, and is charged for those of {other}"
    asks = max(1, found.cpu_milli), max(1, found.memory_mib), asked
    if asks == (pod.cpu_milli, pod.memory_mib, charged):
        return ""
    return (
        f"{found.name} asks for {asks[0]}m cores, {asks[1]} MiB and {asked or 'no device'}, and is"
        f" charged for {pod.cpu_milli}m, {pod.memory_mib} MiB and {charged or 'none'}"
    )


def _memory_limits(pod: Pod) -> dict[str, str]:
    """What a pod that asked for memory of a device is told of it, in the words of what can hold it
    to that: the MPS client, and HAMi-core where the image preloads it. Nothing else does."""
    if pod.gpu_memory_mib is None:
        return {}
    told = {"BERTH_GPU_MEMORY_MIB": str(pod.gpu_memory_mib)}
    if pod.flavor_kind != FlavorKind.SHARE:
        return told  # a slice's limit is its own, and a whole device has no neighbours
    told["CUDA_DEVICE_MEMORY_LIMIT"] = f"{pod.gpu_memory_mib}m"
    if pod.isolation == Isolation.MEMORY:
        told["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={pod.gpu_memory_mib}M"
    return told


def mig_resource(profile: str) -> str:
    """The device plugin writes "1g.10gb+me" as mig-1g.10gb.me."""
    return f"{MIG}{profile.replace('+', '.')}"


def _resources(pod: Pod | Charged) -> tuple[tuple[str, int], ...]:
    """On a node whose devices are cut into replicas, a whole device is all of its replicas.
    Certain devices are claimed, not counted."""
    kind = FlavorKind(pod.flavor_kind)
    if kind is FlavorKind.CPU or pod.pins:
        return ()
    if kind is FlavorKind.MIG:
        name = pod.gpu_resource if pod.mig_single else mig_resource(pod.profile)
        return ((name, pod.gpu_count),)
    if pod.share_replicas == 1:
        return ((pod.gpu_resource, pod.gpu_count),)
    replicas = -(-pod.amount_milli * pod.share_replicas // 1000)
    return ((pod.share_resource, replicas),)
