"""A small installation in the database, moved one function of the loop at a time.

Like tests/flows/world.py, without a cluster to speak to: what pods come to is said by the test.
All times are the test's own; nothing here reads a clock but the database's.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import F

from clusters.models import Cluster, Flavor, FlavorKind, Node
from clusters.port import PodPhase, PodReport
from scheduler.core.cycle import plan
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.loop import lease
from scheduler.loop.applying.apply import Outcome, apply
from scheduler.loop.dispatching import dispatch
from scheduler.loop.observing import observe
from scheduler.models import Attempt, Placement, Workload
from scheduler.selectors.load import Loaded, load_here
from scheduler.services import workloads
from tenants.access import Actor, actor_for
from tenants.models import Project, Role, User
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.fake import FakeCluster

SHARD = "fleet"
LATER = AT + timedelta(minutes=1)


@dataclass
class Stage:
    """`ada` owns the project. Two nodes of eight H100s each; the project may hold all of them."""

    project: Project
    ada: User
    cluster: Cluster
    nodes: list[Node]
    flavor: Flavor
    port: FakeCluster = field(default_factory=FakeCluster)

    @property
    def actor(self) -> Actor:
        return actor_for(user=self.ada)

    def submit(self, name: str = "train", **asked: Any) -> Workload:  # Any: as `spec`
        asked.setdefault("flavor", self.flavor.name)
        [made] = workloads.submit(
            actor=self.actor, project=self.project, specs=[spec(name=name, **asked)], at=AT
        )
        return made

    def cancel(self, workload: Workload, *, at: datetime = LATER) -> None:
        workload.refresh_from_db()
        workloads.cancel(actor=self.actor, workload=workload, at=at)

    # --- the loop, without run_cycle's own transactions ---

    def decide(self, *, at: datetime = AT) -> tuple[Loaded, Plan]:
        loaded = load_here(at=at)
        return loaded, plan(loaded.snapshot, Policy())

    def carry_out(self, loaded: Loaded, decided: Plan, *, at: datetime = AT) -> Outcome:
        held = lease.acquire(shard=SHARD)
        assert held is not None
        try:
            return apply(lease=held, loaded=loaded, plan=decided, at=at)
        finally:
            lease.release(held)

    def cycle(self, *, at: datetime = AT) -> Outcome:
        return self.carry_out(*self.decide(at=at), at=at)

    def dispatch(self, *, at: datetime = AT) -> int:
        return dispatch.dispatch(port=self.port, cluster_id=self.cluster.id, at=lambda: at).taken

    def observe(
        self, *reports: PodReport, at: datetime = LATER, gone: tuple[str, ...] = ()
    ) -> int:
        return observe.pods(cluster_id=self.cluster.id, reports=reports, gone=gone, at=at)

    def relist(self, *, at: datetime = LATER) -> int:
        expected = observe.expected(cluster_id=self.cluster.id)
        return observe.listed(
            cluster_id=self.cluster.id,
            reports=self.port.list_pods().items,
            expected=expected,
            at=at,
        )

    # --- short ways ---

    def started(self, name: str = "train", **asked: Any) -> Workload:  # Any: as `spec`
        """A workload whose pods are open in the cluster, and not seen to run."""
        made = self.submit(name, **asked)
        self.cycle()
        self.dispatch()
        made.refresh_from_db()
        return made

    def running(self, name: str = "train", *, at: datetime = AT, **asked: Any) -> Workload:
        """Any: as `spec`."""
        made = self.started(name, **asked)
        for placement in made.placements.all():
            self.observe(self.report(placement, PodPhase.RUNNING, started_at=at), at=at)
        made.refresh_from_db()
        return made

    def report(self, of: Placement, phase: PodPhase, **fields: Any) -> PodReport:
        """A report as the cluster would send it; Any: fields of it that differ."""
        told = {
            "namespace": of.workload.project.namespace,
            "name": of.pod_name,
            "uid": of.pod_uid,
            "resource_version": "1",
            "phase": phase,
            "installation": settings.BERTH_INSTALLATION,
            "workload": str(of.workload_id),
            "attempt": of.attempt.number,
            "rank": of.rank,
        }
        return PodReport(**{**told, **fields})

    def release_claims(self) -> None:
        """As time does: what anybody claimed or postponed may be claimed now."""
        Attempt.objects.update(claimed_until=AT)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduler_operation SET due_at = clock_timestamp() WHERE done_at IS NULL"
            )

    def hardware_changed(self) -> None:
        Cluster.objects.filter(id=self.cluster.id).update(inventory_rev=F("inventory_rev") + 1)


def build() -> Stage:
    tenant = factories.tenant()
    project = factories.project(tenant)
    ada = factories.user("ada")
    factories.member(ada, Role.OWNER, at=tenant)
    cluster = factories.cluster()
    flavor = factories.flavor("h100", FlavorKind.WHOLE)
    factories.quota(project, flavor, 16_000)
    factories.rate(flavor, "3600")
    nodes = [factories.node(cluster, name) for name in ("n1", "n2")]
    return Stage(project, ada, cluster, nodes, flavor)
