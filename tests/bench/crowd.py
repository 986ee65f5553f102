"""A simulated cluster with many machines and pods, whose pods start when they are told to.

    python -m tests.bench.crowd NODES FOREIGN

Each line that it reads is a command as JSON, and answered by a line:

    {"do": "make", "pods": [[workload, uid, name, node], …]}  → {"made": 10000}
    {"do": "start", "per_s": 500}                              → {"uid": the time of its event, …}

Foreign pods run on the machines by turns, in one turn of ten with a GPU. Made are pods of Berth,
bound and not running, and one more foreign pod after them, by which it is seen that all were heard
of. Then all of Berth's start, so many a second.
"""

import asyncio
import json
import secrets
import sys
import time
from typing import Any

from clusters.adapters.kubernetes import manifests
from clusters.adapters.kubernetes.names import Names
from clusters.port import NVIDIA_GPU, PodRequest
from clusters.simulator import layouts, moments
from clusters.simulator.app import App
from clusters.simulator.cluster import Cluster, namespace
from clusters.simulator.layouts import Pool
from clusters.simulator.server import Options, Server, listening
from tests.kube.api import Json

NAMES = Names(prefix="berth.dev", installation="berth")
NAMESPACE = "berth-bench"


class Crowd:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[str, str] = {}
        self._foreign = 0

    def populate(self, count: int) -> None:
        """So many foreign pods, as if they had been there before."""
        nodes = list(self._cluster.store.tables["nodes"])
        for nth in range(self._foreign, self._foreign + count):
            requests = {"cpu": "500m", "memory": "512Mi"}
            if nth // len(nodes) % 10 == 0:
                requests[NVIDIA_GPU] = "1"
            spec: Json = {
                "containers": [
                    {"name": "main", "image": "nginx:1", "resources": {"requests": requests}}
                ]
            }
            pod = _pod("default", f"other-{nth}", {}, spec, nodes[nth % len(nodes)], "Running")
            self._cluster.store.put("pods", f"default/other-{nth}", pod)
        self._foreign += count

    def make(self, pods: list[tuple[str, str, str, str]]) -> Json:
        for workload, uid, name, node in pods:
            wanted = manifests.pod(_request(workload, name), names=NAMES)
            spec = {
                key: value for key, value in wanted["spec"].items() if key != "schedulingGates"
            }
            pod = _pod(NAMESPACE, name, wanted["metadata"]["labels"], spec, node, "Pending")
            pod["metadata"]["uid"] = uid
            key = f"{NAMESPACE}/{name}"
            self._cluster.store.put("pods", key, pod)
            self._cluster.binder.hold(key, pod)
            self._made[uid] = key
        self.populate(1)
        return {"made": len(pods)}

    async def start(self, per_s: int) -> Json:
        times = {}
        begun = time.monotonic()
        for nth, (uid, key) in enumerate(self._made.items()):
            await asyncio.sleep(max(0.0, begun + nth / per_s - time.monotonic()))
            times[uid] = time.time()
            self._cluster.kubelets.begin(key)
        return times


def _pod(where: str, name: str, labels: Json, spec: Json, node: str, phase: str) -> Json:
    at = moments.rfc3339(moments.now())
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": where,
            "uid": f"uid-{name}",
            "creationTimestamp": at,
            "labels": labels,
        },
        "spec": {**spec, "nodeName": node},
        "status": {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }


def _request(workload: str, name: str) -> PodRequest:
    return PodRequest(
        namespace=NAMESPACE,
        name=name,
        workload=workload,
        attempt=1,
        rank=0,
        image="registry.example.org/train:1",
        command=("sleep", "infinity"),
        args=(),
        env=(),
        cpu_milli=1000,
        memory_mib=1024,
        resources=((NVIDIA_GPU, 1),),
    )


async def _obey(crowd: Crowd) -> None:
    """Commands one by one until there are no more."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked: dict[str, Any] = json.loads(line)  # Any: JSON
        if asked["do"] == "make":
            answer = crowd.make(asked["pods"])
        else:
            answer = await crowd.start(asked["per_s"])
        # Who asked may be busy, and a pipe holds little: the cluster goes on meanwhile.
        await asyncio.to_thread(print, json.dumps(answer), flush=True)


class _Server(Server):
    """The simulator's, with a crowd in it, until there are no more commands."""

    def __init__(self, *, nodes: int, foreign: int, token: str) -> None:
        super().__init__(Options(port=0), token=token)
        machine = Pool("gpu", nodes, 128_000, 2**20, 8, "NVIDIA-H100-80GB-HBM3", 81_559)
        made = layouts.nodes([machine], prefix=NAMES.prefix)
        self.cluster = Cluster(made, start_delay_s=0, window=100_000)
        self.cluster.store.put("namespaces", NAMESPACE, namespace(NAMESPACE))
        self.crowd = Crowd(self.cluster)
        self.crowd.populate(foreign)
        self.config.app = App(self.cluster, token=token, bookmark_s=10.0)


def main() -> None:
    nodes, foreign = map(int, sys.argv[1:])
    token = secrets.token_hex(16)
    server = _Server(nodes=nodes, foreign=foreign, token=token)
    bound = listening(0)
    host, port = bound.getsockname()
    print(json.dumps({"server": f"http://{host}:{port}", "token": token}), flush=True)

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        await _obey(server.crowd)
        server.should_exit = True
        await serving

    asyncio.run(serve())


if __name__ == "__main__":
    main()
