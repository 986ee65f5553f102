"""The demo's tenants, people and machines on a clock that the test moves: no process, no waiting.

The loop's own functions decide, dispatch and observe; the machines are those that the demo's
simulated clusters report, and pods run in memory for the seconds that their command says.

What must not live here: the tests.
"""

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusters.models import Cluster
from clusters.port import PodPhase, PodReport
from clusters.services import clusters, inventory
from controlplane.demo import activity, seed
from controlplane.demo.processes import CLUSTERS
from scheduler.core.cycle import plan
from scheduler.core.lifecycle import TERMINAL, State
from scheduler.core.policy import Policy
from scheduler.loop import lease
from scheduler.loop.applying.apply import apply
from scheduler.loop.dispatching import dispatch
from scheduler.loop.observing import observe
from scheduler.loop.watching import hardware
from scheduler.models import Workload
from scheduler.selectors.load import load_here
from tests.factories import AT
from tests.scheduler.fake import FakeCluster
from tests.simulation import simulation

CYCLE_S = 2
"""As BERTH_CYCLE_S. The hints of a real demo come sooner."""
START_S = 2
"""From an open gate to a running container, watch and all; the demo's machines take less."""

type Mix = dict[str, set[str]]
"""Tenant at the root → which of running, pending, finished its work is."""


@dataclass
class Town(threading.Event):
    """Also the event that `activity.run` waits on: waiting is what makes time pass."""

    until_s: int
    machines: dict[str, FakeCluster] = field(default_factory=dict)
    mixes: dict[int, Mix] = field(default_factory=dict)
    at: datetime = AT
    _waiting_since: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        seed.seed(at=AT)
        for name, layout in CLUSTERS:
            cluster = Cluster.objects.get(name=name)
            clusters.heard(cluster=cluster)
            with simulation(layout=layout) as simulator:
                nodes = simulator.connect().list_nodes().items
            inventory.sync(
                cluster=cluster, reports=nodes, complete=True, arrange=hardware.arrange, at=AT
            )
            self.machines[name] = FakeCluster()

    @property
    def second(self) -> int:
        return int((self.at - AT).total_seconds())

    def live(self) -> "Town":
        """Let its people be at it until the end."""
        activity.run(stop=self, now=lambda: self.at)
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """That many seconds pass; True at the end."""
        for _ in range(round(timeout or 0)):
            self.at += timedelta(seconds=1)
            self._turn()
            self.mixes[self.second] = mix()
        return self.second >= self.until_s

    def _turn(self) -> None:
        if self.second % CYCLE_S == 0:
            loaded = load_here(at=self.at)
            held = lease.acquire(shard="fleet")
            assert held is not None
            apply(lease=held, loaded=loaded, plan=plan(loaded.snapshot, Policy()), at=self.at)
            lease.release(held)
        for cluster in Cluster.objects.all():
            port = self.machines[cluster.name]
            while dispatch.dispatch(port=port, cluster_id=cluster.id, at=lambda: self.at).taken:
                pass
            for pod in port.in_phase(PodPhase.WAITING, PodPhase.RUNNING):
                self._run(port, pod)
            expected = observe.expected(cluster_id=cluster.id)
            observe.listed(
                cluster_id=cluster.id,
                reports=port.list_pods().items,
                expected=expected,
                at=self.at,
            )

    def _run(self, port: FakeCluster, pod: PodReport) -> None:
        since = self._waiting_since.setdefault(pod.uid, self.at)
        if pod.started_at is None:
            if self.at - since >= timedelta(seconds=START_S):
                port.becomes(pod.name, PodPhase.RUNNING, started_at=self.at)
            return
        program, *seconds = port.requests[pod.name].command
        ends_at = pod.started_at + timedelta(seconds=int(seconds[0]) if seconds else 0)
        if ends_at <= self.at:
            code = 0 if program == "sleep" else 1
            phase = PodPhase.FAILED if code else PodPhase.SUCCEEDED
            port.becomes(pod.name, phase, finished_at=ends_at, exit_code=code)


def mix() -> Mix:
    found: Mix = defaultdict(set)
    for workload in Workload.objects.select_related("project__tenant__parent"):
        tenant = workload.project.tenant
        root = (tenant.parent or tenant).slug
        if workload.state in TERMINAL:
            found[root].add("finished")
        elif workload.state in (State.RUNNING, State.PENDING):
            found[root].add(workload.state.lower())
    return found
