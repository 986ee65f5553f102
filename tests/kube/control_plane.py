"""A real Kubernetes control plane on loopback: etcd, API server, controllers, scheduler, KWOK.

    with ControlPlane(binaries.find()) as kube:
        kube.add_gpu_node("gpu-1", model="NVIDIA H100 80GB HBM3", gpus=8, memory_mib=81559,
                          cpu_milli=96_000, ram_mib=1_048_576)
        kube.berth.get("/api/v1/nodes")

Everything is private to the object: ports, folder, keys, tokens. Nothing outlives it.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from clusters.adapters.kubernetes import access
from clusters.adapters.kubernetes.names import Names
from tests.clusters.authority import Authority
from tests.kube import processes
from tests.kube.api import Api, Json
from tests.kube.credentials import ec_private_key_pem, write_kubeconfig, write_tokens
from tests.kube.gpu_nodes import gpu_node
from tests.kube.manifests import apply, parsed
from tests.kube.processes import Part, free_port
from tests.waiting import eventually

HERE = Path(__file__).parent
NAMES = Names(prefix="berth.dev", installation="berth")

_ADMIN, _MANAGER, _SCHEDULER = "admin", "system:kube-controller-manager", "system:kube-scheduler"
_GROUPS = {_ADMIN: "system:masters", _MANAGER: "", _SCHEDULER: ""}


class ControlPlane:
    """Five processes and the credentials to them, between `with` and its end.

    server, ca_pem, admin_token, berth_token   what a cluster is registered with
    admin, berth                               the same as ready-made JSON clients
    clients                                    whose certificates say who somebody is
    """

    server: str
    ca_pem: str
    admin_token: str
    berth_token: str
    admin: Api
    berth: Api
    clients: Authority

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self._parts: list[Part] = []
        self._namespaces = 0
        self.clients = Authority()

    def __enter__(self) -> Self:
        for attempt in range(3):
            self._folder = Path(tempfile.mkdtemp(prefix="berth-kube-"))
            try:
                self._start()
            except processes.Died as died:
                self.stop()
                # Between finding a port and binding it another process may have taken it.
                if attempt == 2 or "address already in use" not in str(died):
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return self
        raise AssertionError("unreachable")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process and remove the folder; safe to call again."""
        processes.stop(self._parts)
        self._parts.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add_gpu_node(
        self,
        name: str,
        *,
        model: str,
        gpus: int,
        memory_mib: int,
        cpu_milli: int,
        ram_mib: int,
        mig: Mapping[str, int] | None = None,
        mig_gpus: int | None = None,
        ready: bool = True,
    ) -> Json:
        """Create a fake node (see `gpu_node`) and, unless told not to, wait till it is usable."""
        node = gpu_node(
            name,
            model=model,
            gpus=gpus,
            memory_mib=memory_mib,
            cpu_milli=cpu_milli,
            ram_mib=ram_mib,
            mig=mig or {},
            mig_gpus=mig_gpus,
        )
        created = self.admin.create("/api/v1/nodes", node)
        return self.wait_for_node(name) if ready else created

    def wait_for_node(self, name: str) -> Json:
        """The node, once KWOK has made it Ready and the controllers took its taints away."""

        def usable() -> Json | None:
            node = self.admin.get(f"/api/v1/nodes/{name}")
            conditions = node["status"].get("conditions", [])
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            return node if ready and not node["spec"].get("taints") else None

        return eventually(f"node {name} is ready and without taints", usable)

    def add_namespace(self) -> str:
        """Create a namespace that no test had before and return its name."""
        self._namespaces += 1
        name = f"test-{self._namespaces}"
        body: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.admin.create("/api/v1/namespaces", body)
        return name

    def token_of(self, names: Names) -> str:
        """A bound token of the account of their manifest, as `kubectl create token` makes."""
        request: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 24 * 3600},
        }
        path = f"/api/v1/namespaces/{names.home}/serviceaccounts/{names.own}/token"
        return str(self.admin.create(path, request)["status"]["token"])

    def serves(self, group_version: str, resource: str) -> bool:
        """Whether it has such objects, or such parts of objects: "pods/resize" of "v1"."""
        api = "api" if group_version == "v1" else "apis"
        answer = self.admin.call("GET", f"/{api}/{group_version}")
        return resource in [each["name"] for each in answer.body.get("resources", ())]

    def log_of(self, part: str) -> str:
        """What `part` (etcd, kube-apiserver, ..., kwok) has printed so far."""
        return (self._folder / f"{part}.log").read_text(errors="replace")

    def _start(self) -> None:
        etcd = self._start_etcd()
        tokens = self._start_api_server(etcd)
        self._connect(tokens[_ADMIN])
        for part in self._start_the_rest(tokens):
            self._wait_until_ready(part)

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        etcd = self._run(
            "etcd",
            f"{client}/readyz",
            "--data-dir=etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        )
        self._wait_until_ready(etcd)
        return client

    def _start_api_server(self, etcd: str) -> dict[str, str]:
        tokens = write_tokens(self._folder / "tokens.csv", _GROUPS)
        (self._folder / "clients.crt").write_text(self.clients.pem)
        (self._folder / "service-accounts.key").write_text(ec_private_key_pem())
        port = free_port()
        self.server = f"https://127.0.0.1:{port}"
        api_server = self._run(
            "kube-apiserver",
            f"{self.server}/readyz",
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # it refuses to publish a loopback address
            f"--secure-port={port}",
            "--cert-dir=certificates",
            "--token-auth-file=tokens.csv",
            "--client-ca-file=clients.crt",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=service-accounts.key",
            "--service-account-signing-key-file=service-accounts.key",
            "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged",  # as clusters are set up: Pod Security has to hold them back
            "--service-cluster-ip-range=10.0.0.0/16",
        )
        self._wait_until_ready(api_server)
        return tokens

    def _connect(self, admin_token: str) -> None:
        """Fill in what the class promises: the address's CA and the two identities."""
        self.ca_pem = self._ca_file.read_text()
        self.admin_token = admin_token
        self.admin = Api(self.server, self.ca_pem, admin_token)
        apply(self.admin, parsed(access.text(names=NAMES, user=None, token_h=24)))
        self.berth_token = self.token_of(NAMES)
        self.berth = Api(self.server, self.ca_pem, self.berth_token)
        eventually(
            "the API server has seen the role of Berth's account",
            lambda: self.berth.call("GET", "/api/v1/nodes").status == 200,
        )

    def _start_the_rest(self, tokens: Mapping[str, str]) -> list[Part]:
        for user, token in tokens.items():
            write_kubeconfig(self._folder / f"{user}.json", self.server, self._ca_file, token)
        manager, scheduler, kwok = free_port(), free_port(), free_port()
        return [
            self._run(
                "kube-controller-manager",
                f"https://127.0.0.1:{manager}/healthz",
                f"--kubeconfig={_MANAGER}.json",
                "--use-service-account-credentials",
                "--node-monitor-period=500ms",  # how soon a new node loses its not-ready taint
                "--kube-api-qps=500",  # the defaults make its start four seconds longer
                "--kube-api-burst=1000",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={manager}",
            ),
            self._run(
                "kube-scheduler",
                f"https://127.0.0.1:{scheduler}/healthz",  # /readyz came with 1.31
                f"--kubeconfig={_SCHEDULER}.json",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={scheduler}",
            ),
            self._run(
                "kwok",
                f"http://127.0.0.1:{kwok}/readyz",
                f"--kubeconfig={self._folder / _ADMIN}.json",
                f"--config={HERE / 'stages.yaml'}",
                "--manage-all-nodes",
                "--node-ip=10.255.0.1",
                "--node-lease-duration-seconds=40",
                f"--server-address=127.0.0.1:{kwok}",
            ),
        ]

    @property
    def _ca_file(self) -> Path:
        """The certificate that the API server made for itself, and of the CA that signed it."""
        return self._folder / "certificates" / "apiserver.crt"

    def _run(self, name: str, ready_url: str, *flags: str) -> Part:
        part = processes.start(self._binaries / name, flags, self._folder, ready_url)
        self._parts.append(part)
        return part

    def _wait_until_ready(self, part: Part) -> None:
        eventually(f"{part.name} is ready", part.is_ready)
