"""`stage`: each contract test plays on the simulator and on a real Kubernetes control plane."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.adapters.kubernetes import access, device_claims
from clusters.adapters.kubernetes.adapter import KubernetesCluster
from clusters.adapters.kubernetes.rights import Right
from clusters.confinement import Confinement
from clusters.parts import Part
from clusters.port import PodReport
from tests.contract.stage import Stage
from tests.kube import binaries, processes
from tests.kube.api import Json
from tests.kube.control_plane import NAMES, ControlPlane
from tests.kube.crds import serve_karpenter, serve_requests
from tests.kube.fixtures import CLAIMS, control_plane, needs
from tests.kube.kubelet import kubelet
from tests.kube.manifests import apply
from tests.kube.mig_manager import make_config_map, mig_manager
from tests.simulation import Simulator, simulation
from tests.waiting import eventually

NEWER = ("DeviceClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
"""What the oldest Kubernetes has not."""

__all__ = ["control_plane", "stage"]


@pytest.fixture(scope="session")
def simulated() -> Iterator[Simulator]:
    with simulation(bookmark_s=1.0) as running:
        yield running


@pytest.fixture(
    params=[
        "simulator",
        pytest.param("kubernetes", marks=pytest.mark.kube),
    ]
)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    if request.param == "simulator":
        with _on_simulator(request.getfixturevalue("simulated")) as played:
            yield played
    else:
        with _on_kubernetes(request.getfixturevalue("control_plane")) as played:
            yield played


@contextmanager
def _on_simulator(simulator: Simulator) -> Iterator[Stage]:
    def without_right() -> str:
        simulator.fault(kind="forbid", verb="create", resource="pods")
        return simulator.token

    @contextmanager
    def lacking(right: Right) -> Iterator[KubernetesCluster]:
        # Owners of pods it knows by their group, too.
        resource = right.resource if right.part is not Part.CATCH else str(right).split()[1]
        simulator.fault(kind="forbid", verb=right.verb, resource=resource, count=0)
        port = played.connect()
        yield port
        port.close()
        simulator.heal()

    @contextmanager
    def recutting() -> Iterator[KubernetesCluster]:
        port = played.connect(installation="mig")
        yield port
        port.close()

    @contextmanager
    def claiming() -> Iterator[KubernetesCluster]:
        names = replace(NAMES, installation="dra")
        path = "/apis/resource.k8s.io/v1/deviceclasses"
        simulator.call("POST", path, device_claims.device_class(names=names))
        port = played.connect(installation="dra")
        yield port
        port.close()
        simulator.call("DELETE", f"{path}/{names.own}")

    @contextmanager
    def autoscaling() -> Iterator[KubernetesCluster]:
        port = played.connect(installation="autoscale")
        port.confine(wanted=Confinement("berth-autoscale-system"))
        yield port
        port.close()

    @contextmanager
    def inspecting() -> Iterator[KubernetesCluster]:
        yield played.port

    def log(pod: PodReport, said: str) -> None:
        simulator.fault(kind="pod-says", pod=f"{pod.namespace}/{pod.name}", log=said)

    played = Stage(
        server=simulator.server,
        ca_pem=None,
        token=simulator.token,
        admin=simulator.call,
        without_right=without_right,
        lacking=lacking,
        inspecting=inspecting,
        log=log,
        lose_history=lambda: simulator.fault(kind="forget-history"),
        recutting=recutting,
        claiming=claiming,
        autoscaling=autoscaling,
        simulated=True,
    )
    try:
        yield played
    finally:
        simulator.heal()
        played.close()


@contextmanager
def _on_kubernetes(kube: ControlPlane) -> Iterator[Stage]:
    def admin(method: str, path: str, body: object = None) -> Json:
        assert body is None or isinstance(body, dict)
        return kube.admin.do(method, path, body)

    def without_right() -> str:
        accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
        name = f"nobody-{played.namespace}"
        admin("POST", accounts, {"metadata": {"name": name}})
        ask = {"spec": {"expirationSeconds": 3600}}
        answer = admin("POST", f"{accounts}/{name}/token", ask)
        return str(answer["status"]["token"])

    @contextmanager
    def lacking(right: Right) -> Iterator[KubernetesCluster]:
        names = replace(NAMES, installation="lacking")
        make_config_map(kube.admin)  # one of the roles is in its namespace
        documents = access.documents(names=names, parts=[*Part])
        if binaries.is_oldest():
            documents = [each for each in documents if each["kind"] not in NEWER]
        for document in documents:
            if "rules" in document:
                document["rules"] = [*without(right, document["rules"])]
        apply(kube.admin, documents)  # each time others, and never removed: that takes seconds
        port = played.connect(token=kube.token_of(names), installation="lacking")
        eventually("the roles are seen", lambda: lacks_only(port, right))
        yield port
        port.close()

    @contextmanager
    def recutting() -> Iterator[KubernetesCluster]:
        names = replace(NAMES, installation="mig")
        with mig_manager(kube.admin):
            apply(kube.admin, access.documents(names=names, parts=[Part.MIG]))
            port = played.connect(token=kube.token_of(names), installation="mig")
            eventually("the roles are seen", lambda: may_cut(port))
            yield port
            port.close()

    @contextmanager
    def claiming() -> Iterator[KubernetesCluster]:
        needs(kube, *CLAIMS)
        names = replace(NAMES, installation="dra")
        apply(kube.admin, access.documents(names=names, parts=[Part.DRA]))
        port = played.connect(token=kube.token_of(names), installation="dra")
        eventually("the roles are seen", lambda: may_claim(port))
        yield port
        port.close()

    @contextmanager
    def autoscaling() -> Iterator[KubernetesCluster]:
        names = replace(NAMES, installation="autoscale")
        serve_karpenter(kube.admin)
        serve_requests(kube.admin)
        apply(kube.admin, access.documents(names=names, parts=[Part.AUTOSCALE]))
        port = played.connect(token=kube.token_of(names), installation="autoscale")
        eventually("the role is seen", lambda: port.read_autoscaling() is not None)
        yield port
        port.close()

    @contextmanager
    def inspecting() -> Iterator[KubernetesCluster]:
        names = replace(NAMES, installation="logs")
        apply(kube.admin, access.documents(names=names, parts=[Part.LOGS]))
        port = played.connect(token=kube.token_of(names), installation="logs")
        eventually("the roles are seen", lambda: may_inspect(port))
        yield port
        port.close()

    def log(pod: PodReport, said: str) -> None:
        told = kubelets.enter_context(kubelet())
        told.logs[f"{pod.namespace}/{pod.name}"] = said.encode()
        path = f"/api/v1/nodes/{played.read(pod).node}"
        node = admin("GET", path)
        node["status"]["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
        node["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": told.server_port}}
        admin("PUT", f"{path}/status", node)

    kubelets = ExitStack()
    played = Stage(
        server=kube.server,
        ca_pem=kube.ca_pem,
        token=kube.berth_token,
        admin=admin,
        without_right=without_right,
        lacking=lacking,
        inspecting=inspecting,
        log=log,
        lose_history=lambda: restart_api_server(kube),
        recutting=recutting,
        claiming=claiming,
        autoscaling=autoscaling,
        simulated=False,
    )
    try:
        with kubelets:
            yield played
    finally:
        played.close()


def without(right: Right, rules: Iterable[Json]) -> Iterator[Json]:
    """Rules that grant the rest of what these do, for each resource one."""
    for rule in rules:
        for resource in rule["resources"]:
            of_it = (rule["apiGroups"], resource) == ([right.group], right.resource)
            verbs = [verb for verb in rule["verbs"] if not (of_it and verb == right.verb)]
            if verbs:
                yield {**rule, "resources": [resource], "verbs": verbs}


def lacks_only(port: KubernetesCluster, right: Right) -> bool:
    said = [step.said for step in port.probe() if "may not " in step.said]
    return len(said) == 1 and any(f"may not {right}{end}" in said[0] for end in ":,")


def may_cut(port: KubernetesCluster) -> bool:
    return any(step.said == "Berth may cut nodes anew there" for step in port.probe())


def may_claim(port: KubernetesCluster) -> bool:
    return any(step.said == "Berth may claim certain devices there" for step in port.probe())


def may_inspect(port: KubernetesCluster) -> bool:
    said = "Berth may show events and logs of pods there"
    return any(step.said == said for step in port.probe())


def restart_api_server(kube: ControlPlane) -> None:
    """Its watch caches begin anew: what happened before can no longer be watched."""
    [old] = [part for part in kube._parts if part.name == "kube-apiserver"]
    processes.stop([old])
    assert isinstance(old.process.args, list)
    binary, *flags = map(str, old.process.args)
    fresh = processes.start(Path(binary), flags, old.log.parent, old.ready_url)
    kube._parts[kube._parts.index(old)] = fresh
    eventually("the API server is ready again", fresh.is_ready)
