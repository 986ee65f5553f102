"""What a contract test plays on: one cluster, real or simulated, behind the same few doors.

The tests speak to it through the port alone; `admin` is for what Berth itself may not do.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.client import Client
from clusters.adapters.kubernetes.names import Names
from clusters.adapters.kubernetes.rights import Right
from clusters.confinement import Confinement
from clusters.port import PodPhase, PodReport, PodRequest
from tests.kube.gpu_nodes import gpu_node
from tests.networks import LOOPBACK
from tests.waiting import eventually

_serial = count(1)
ENDED = [phase for phase in PodPhase if phase.ended]


class Admin(Protocol):
    """A request with every right; an error answer raises."""

    def __call__(self, method: str, path: str, body: object = None) -> Any: ...  # Any: JSON


@dataclass
class Stage:
    """`without_right` gives the credential of somebody who may do nothing; `lacking` is an
    installation that may do all of every part, just not that; `lose_history` makes the server
    forget every change up to now. `recutting` is an installation that may cut nodes anew, "mig",
    where there are MIG managers, `claiming` one that may claim certain devices, "dra";
    `autoscaling` one that sees what nodes can come, "autoscale", where there are Karpenter's
    kinds; `inspecting` one that may read events and logs. `log` has a pod that runs say that, and
    nothing else."""

    server: str
    ca_pem: str | None
    token: str
    admin: Admin
    without_right: Callable[[], str]
    lacking: Callable[[Right], AbstractContextManager[KubernetesCluster]]
    lose_history: Callable[[], None]
    recutting: Callable[[], AbstractContextManager[KubernetesCluster]]
    claiming: Callable[[], AbstractContextManager[KubernetesCluster]]
    autoscaling: Callable[[], AbstractContextManager[KubernetesCluster]]
    inspecting: Callable[[], AbstractContextManager[KubernetesCluster]]
    log: Callable[[PodReport, str], None]
    simulated: bool
    namespace: str = ""
    nodes: list[str] = field(default_factory=list)
    port: KubernetesCluster = field(init=False)

    def __post_init__(self) -> None:
        self.port = self.connect()
        self.namespace = f"contract-{next(_serial)}"
        self.port.confine(wanted=Confinement(self.namespace))

    def connect(
        self,
        *,
        token: str = "",
        installation: str = "berth",
        page: int = 500,
        watch_s: int = 60,
    ) -> KubernetesCluster:
        client = Client(
            server=self.server,
            identity=token or self.token,
            allowed=LOOPBACK,
            ca_pem=self.ca_pem,
        )
        return KubernetesCluster(
            client,
            names=Names(prefix="berth.dev", installation=installation),
            page=page,
            watch_timeout_s=watch_s,
            watch_read_timeout_s=watch_s + 10.0,
        )

    def add_node(self, *, gpus: int = 8, mig: dict[str, int] | None = None) -> str:
        """A fresh, ready machine with 80 GB H100s; its hostname."""
        name = f"contract-{next(_serial)}"
        body = gpu_node(
            name,
            model="NVIDIA H100 80GB HBM3",
            gpus=gpus,
            memory_mib=81_559,
            cpu_milli=96_000,
            ram_mib=1_048_576,
            mig=mig or {},
        )
        self.admin("POST", "/api/v1/nodes", body)
        self.nodes.append(name)
        eventually(f"node {name} is usable", lambda: self._is_usable(name))
        return name

    def request(
        self, *, command: tuple[str, ...] = ("sleep", "1"), **resources: int
    ) -> PodRequest:
        """A pod of a workload of its own; `gpu=4` asks for four of nvidia.com/gpu."""
        workload = f"work-{next(_serial)}"
        return PodRequest(
            namespace=self.namespace,
            name=f"{workload}-1-0",
            workload=workload,
            attempt=1,
            rank=0,
            image="example.test/train:1",
            command=command,
            args=(),
            env=(("GREETING", "hello"),),
            cpu_milli=1000,
            memory_mib=512,
            resources=tuple((f"nvidia.com/{key}", n) for key, n in resources.items()),
            run_time_limit_s=3600,
        )

    def open(self, pod: PodReport, node: str) -> PodReport:
        """The gate of a pod that was just read."""
        return self.port.open_gate(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            resource_version=pod.resource_version,
            hostname=node,
        )

    def start(self, node: str, **asked: Any) -> PodReport:  # Any: as `request`
        """A pod, created and opened onto the node."""
        return self.open(self.port.create_pod(request=self.request(**asked)), node)

    def read(self, pod: PodReport) -> PodReport:
        report = self.port.read_pod(namespace=pod.namespace, name=pod.name)
        assert report is not None
        return report

    def wait(self, pod: PodReport, *phases: PodPhase) -> PodReport:
        """The pod, once it is in one of those phases."""

        def there() -> PodReport | None:
            report = self.read(pod)
            return report if report.phase in phases else None

        return eventually(f"{pod.name} is {' or '.join(phases)}", there)

    def close(self) -> None:
        for pod in self.port.list_pods().items:
            if pod.namespace == self.namespace:
                self.port.delete_pod(
                    namespace=pod.namespace, name=pod.name, uid=pod.uid, grace_s=0
                )
        for name in self.nodes:
            self.admin("DELETE", f"/api/v1/nodes/{name}")
        self.port.close()

    def _is_usable(self, name: str) -> bool:
        node = next((node for node in self.port.list_nodes().items if node.name == name), None)
        return node is not None and node.ready and node.schedulable
