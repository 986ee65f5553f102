"""Two clusters that one watcher follows: `north` is sound, and `south` is what the test says.

On each of them a witness runs, which nobody may touch.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from html import unescape
from pathlib import Path

from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from clusters.models import Cluster, ClusterState, Device, Node
from clusters.services import clusters
from controlplane.kernel import hints
from controlplane.kernel.clock import now
from scheduler.core.lifecycle import State
from scheduler.models import Operation, Placement, Workload
from tenants.models import Member, Role, User
from tests.clusters.authority import Authority
from tests.crash.children import Children
from tests.flows.world import World, build, spec
from tests.hostile.server import Hostile, hostile
from tests.simulation import Simulator, simulation, store_credential
from tests.waiting import eventually

MOST_MIB = 1024
"""By how much a process that follows clusters may grow through a hostile one."""
LONGEST_TOLD = 500
MOST_NODES, MOST_PODS = 100, 5000
"""Of one cluster, for the watcher: what a test can wait for."""
LONG, SHORT = ("sleep", "600"), ("sleep", "0.2")


@dataclass
class Lab:
    world: World
    south: Cluster
    server: Hostile
    behind: Simulator
    children: Children
    witnesses: tuple[Workload, ...] = ()
    _watcher: int = 0
    _began_mib: float = 0
    _placed: list[tuple[object, ...]] = field(default_factory=list)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Inside it a new process follows both, which were heard, and soundly so."""
        Cluster.objects.update(last_error="not heard yet", left_out={})
        self._watcher = self.children.spawn("follow", most_nodes=MOST_NODES, most_pods=MOST_PODS)
        try:
            self._began_mib = self._peak_mib()
            for name in ("north", "south"):
                self.heard(name)
            yield
        finally:
            self.children.kill(self._watcher)
            self.server.heal()

    def settle(self) -> None:
        """The witnesses run; what is as it is now has to stay."""
        self.witnesses = tuple(
            self.submit(name, command=LONG, name=f"witness-{name}") for name in ("north", "south")
        )
        eventually("the witnesses run", lambda: self._all_in(State.RUNNING, *self.witnesses))
        self._placed = self._placements()

    def submit(self, cluster: str, *, command: tuple[str, ...], name: str) -> Workload:
        """A workload for that cluster, placed there; of north it is begun too."""
        wanted = replace(spec("h100", command=command, name=name), clusters=(cluster,))
        [workload] = self.world.submit(wanted)
        self.world.cycle()
        assert Placement.objects.filter(workload=workload).exists()
        self.children.run("dispatch", cluster=cluster)
        return workload

    def ends(self, workload: Workload) -> None:
        """What south was asked to stop is seen to have stopped."""

        def over() -> bool:
            hints.end(f"dispatch:{self.south.id}")  # as if its time to be left alone had run out
            Operation.objects.filter(done_at=None).update(due_at=Now())
            self.children.run("dispatch", cluster="south")
            workload.refresh_from_db()
            return workload.state == State.CANCELLED

        eventually(f"{workload.name} is over", over)

    def works(self) -> None:
        """Work runs through on north, and nothing else has changed."""
        done = self.submit("north", command=SHORT, name="through")
        eventually("it ran through", lambda: self._all_in(State.SUCCEEDED, done))
        assert self._all_in(State.RUNNING, *self.witnesses)
        assert self._placements() == self._placed
        self.heard("north")
        assert self.grown_mib() < MOST_MIB

    def inventory(self) -> list[tuple[object, ...]]:
        """South's nodes and devices, that are there, as Berth knows them."""
        nodes = Node.objects.filter(cluster=self.south, gone_at=None).order_by("name")
        devices = Device.objects.filter(node__in=nodes, gone_at=None).order_by(
            "node__name", "ordinal"
        )
        return [
            *nodes.values_list("name", "hostname", "cpu_milli", "memory_mib"),
            *devices.values_list("node__name", "ordinal", "model", "memory_mib"),
        ]

    def told(self, pattern: str) -> None:
        """South's error comes to say that, on one bounded line that its page shows escaped."""

        def said() -> str:
            error = Cluster.objects.get(name="south").last_error
            return error if re.search(pattern, error) else ""

        try:
            error = eventually(f"it is told: {pattern}", said)
        except TimeoutError:
            raise AssertionError(Cluster.objects.get(name="south").last_error) from None
        assert len(error) <= LONGEST_TOLD
        assert error.isprintable()
        page = self._page()
        assert "<script" not in page.partition("Last error")[2].partition("</p>")[0]
        assert "Last error" in page

    def left_out(self, kind: str, told: str) -> None:
        """Something of south's list comes to be left out, and its page says so, escaped."""
        eventually(
            f"some of its {kind} are left out",
            lambda: self.left_out_of(kind),
        )
        page = self._page()
        assert told in unescape(page)
        assert "<script>alert" not in page

    def left_out_of(self, kind: str) -> int:
        """How many of them are left out now."""
        told = Cluster.objects.get(name="south").left_out.get(kind, {})
        return int(told.get("count", 0))

    def nodes(self) -> list[object]:
        """South's, as it tells them itself."""
        found: list[object] = self.behind.call("GET", "/api/v1/nodes")["items"]
        return found

    def pods(self) -> list[object]:
        found: list[object] = self.behind.call("GET", "/api/v1/pods")["items"]
        return found

    def has_node(self, name: str) -> bool:
        return Node.objects.filter(cluster=self.south, name=name, gone_at=None).exists()

    def grown_mib(self) -> float:
        """By how much the watcher grew at most."""
        return self._peak_mib() - self._began_mib

    def not_heard_for_long(self) -> None:
        """As if south had been silent for longer than an active cluster may be."""
        long_ago = now() - timedelta(seconds=clusters.DEGRADED_S + 1)
        Cluster.objects.filter(name="south").update(seen_at=long_ago)

    def state(self) -> str:
        clusters.mark_silent()
        return Cluster.objects.get(name="south").state

    def heard(self, name: str) -> None:
        unheard = Cluster.objects.filter(name=name).exclude(last_error="")
        try:
            eventually(f"{name} is heard", lambda: not unheard.exists())
        except TimeoutError:
            raise AssertionError(unheard.get().last_error) from None

    def _page(self) -> str:
        browser = Client()
        browser.force_login(User.objects.get(username="ada"))
        answer = browser.get(reverse("cluster-detail", args=["south"]))
        assert answer.status_code == 200
        return answer.content.decode()

    def _placements(self) -> list[tuple[object, ...]]:
        rows = Placement.objects.filter(workload__in=self.witnesses).order_by("id")
        columns = ("pod_uid", "node", "started_at", "ended_at", "released_at")
        return list(rows.values_list(*columns))

    def _all_in(self, state: State, *workloads: Workload) -> bool:
        found = Workload.objects.filter(id__in=[each.id for each in workloads], state=state)
        return found.count() == len(workloads)

    def _peak_mib(self) -> float:
        for line in Path(f"/proc/{self._watcher}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the watcher has died")


@contextmanager
def furnished(children: Children, folder: Path) -> Iterator[Lab]:
    authority = Authority()
    with (
        simulation(bookmark_s=0.2) as sound,
        simulation(bookmark_s=0.2) as behind,
        hostile(behind.server, authority, folder) as server,
    ):
        world = build(sound)
        sound.store_credential(world.cluster)
        Member.objects.create(user=User.objects.get(username="ada"), role=Role.OPERATOR)
        south = clusters.register(
            name="south", region="lab", actor="system:test", actor_name="test", at=now()
        )
        store_credential(south, server=server.url, token=behind.token, ca=authority.pem)
        lab = Lab(world, south, server, behind, children)
        with lab.followed():
            assert Cluster.objects.filter(state=ClusterState.ACTIVE).count() == 2
            lab.settle()
        yield lab
