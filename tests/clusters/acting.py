"""Short ways to make pods on a simulated cluster through the real adapter."""

from dataclasses import replace
from itertools import count

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.port import PodPhase, PodReport, PodRequest
from tests.waiting import eventually

_serial = count(1)
ENDED = [phase for phase in PodPhase if phase.ended]
NAMESPACE = "default"


def request(*command: str, **change: object) -> PodRequest:
    """A pod of a workload of its own, by default `sleep 600`."""
    workload = f"work-{next(_serial)}"
    plain = PodRequest(
        namespace=NAMESPACE,
        name=f"{workload}-1-0",
        workload=workload,
        attempt=1,
        rank=0,
        image="example.test/train:1",
        command=command or ("sleep", "600"),
        args=(),
        env=(),
        cpu_milli=1000,
        memory_mib=512,
    )
    return replace(plain, **change)  # type: ignore[arg-type]  # by test


def opened(port: KubernetesCluster, asked: PodRequest, *, node: str = "h100-0") -> PodReport:
    pod = port.create_pod(request=asked)
    return port.open_gate(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.resource_version,
        hostname=node,
    )


def read(port: KubernetesCluster, pod: PodReport) -> PodReport | None:
    return port.read_pod(namespace=pod.namespace, name=pod.name)


def delete(port: KubernetesCluster, pod: PodReport, *, grace_s: int = 30) -> None:
    port.delete_pod(namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_s=grace_s)


def wait(port: KubernetesCluster, pod: PodReport, *phases: PodPhase) -> PodReport:
    """The pod, once it is in one of those phases."""

    def there() -> PodReport | None:
        report = read(port, pod)
        return report if report is not None and report.phase in phases else None

    return eventually(f"{pod.name} is {' or '.join(phases)}", there)


def run(port: KubernetesCluster, asked: PodRequest) -> PodReport:
    """The pod after its end."""
    return wait(port, opened(port, asked), *ENDED)


def gone(port: KubernetesCluster, pod: PodReport) -> None:
    eventually(f"{pod.name} is gone", lambda: read(port, pod) is None)
