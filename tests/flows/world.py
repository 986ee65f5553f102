"""A small installation on one simulated cluster, moved by hand: each step is one call of the loop.

Nothing is mocked: PostgreSQL, the real adapter, the HTTP simulator. Only Celery is left out, so
that a test says which step comes next.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor, FlavorKind, Isolation
from clusters.port import ClusterPort, PodReport
from clusters.services import clusters, inventory
from controlplane.kernel.clock import now
from scheduler.core.failures import RETRIES, Retries
from scheduler.core.lifecycle import State
from scheduler.loop import run
from scheduler.loop.dispatching import collect, dispatch
from scheduler.loop.observing import observe
from scheduler.loop.watching import hardware
from scheduler.models import Workload
from scheduler.services import workloads
from scheduler.services.specs import PodSetSpec, WorkloadSpec
from tenants import access
from tenants.models import Member, Project, Quota, Rate, Role, Tenant, User
from tests.simulation import Simulator
from tests.waiting import PATIENCE_S

A100 = "A100-SXM4-80GB"
H100 = "H100-80GB-HBM3"


def spec(
    flavor: str = "h100",
    *,
    name: str = "train",
    gpus: int = 1,
    count: int = 1,
    least: int | None = None,
    command: tuple[str, ...] = ("sleep", "1"),
    priority_class: str = "normal",
    preemptible: bool = True,
    gpu_milli: int = 1000,
    run_time_limit_s: int | None = None,
    image: str = "busybox",
    retries: Retries = RETRIES,
    grace_s: int = 30,
    notice_s: int = 0,
    cluster_loss_requeue_s: int | None = None,
) -> WorkloadSpec:
    pods = PodSetSpec(
        name="main",
        count=count,
        min_count=count if least is None else least,
        cpu_milli=1000,
        memory_mib=1024,
        gpu_count=gpus,
        gpu_milli=gpu_milli,
        flavors=(flavor,),
        image=image,
        command=command,
    )
    return WorkloadSpec(
        name=name,
        pod_sets=(pods,),
        priority_class=priority_class,
        preemptible=preemptible,
        run_time_limit_s=run_time_limit_s,
        retries=retries,
        grace_s=grace_s,
        notice_s=notice_s,
        cluster_loss_requeue_s=cluster_loss_requeue_s,
    )


@dataclass
class Installation:
    """`ada` may submit in both projects, vision and speech, of two tenants."""

    port: ClusterPort
    cluster: Cluster
    flavors: dict[str, Flavor]
    vision: Project
    speech: Project
    ada: access.Actor

    def submit(self, *specs: WorkloadSpec, project: Project | None = None) -> list[Workload]:
        return workloads.submit(
            actor=self.ada, project=project or self.vision, specs=specs, at=now()
        )

    def cycle(self) -> None:
        run.run_cycle(at=now())

    def dispatch(self) -> None:
        while dispatch.dispatch(port=self.port, cluster_id=self.cluster.id, at=now).taken:
            pass
        while self.collect():
            pass

    def collect(self) -> int:
        return collect.collect(port=self.port, cluster_id=self.cluster.id).taken

    def observe(self) -> tuple[PodReport, ...]:
        expected = observe.expected(cluster_id=self.cluster.id)
        pods = self.port.list_pods().items
        observe.listed(cluster_id=self.cluster.id, reports=pods, expected=expected, at=now())
        return pods

    def sync(self) -> None:
        inventory.sync(
            cluster=self.cluster,
            reports=self.port.list_nodes().items,
            complete=True,
            arrange=hardware.arrange,
            at=now(),
        )

    def turn(self) -> None:
        """One of everything, in the order a fortunate day has."""
        self.cycle()
        self.dispatch()
        self.observe()

    def until(self, reached: Callable[[], bool]) -> None:
        """Turn until it is so; fails with the states seen."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            states = list(Workload.objects.values_list("name", "state", "reason"))
            assert time.monotonic() < deadline, states
            self.turn()

    def until_state(self, workload: Workload, *states: State) -> Workload:
        def reached() -> bool:
            workload.refresh_from_db()
            return workload.state in states

        self.until(reached)
        return workload

    def quota(
        self,
        project: Project,
        flavor: str,
        nominal: int,
        *,
        borrowing: int | None = None,
        lending: int | None = None,
    ) -> Quota:
        """Amounts in whole units."""
        quota, _ = Quota.objects.update_or_create(
            project=project,
            flavor=self.flavors[flavor],
            defaults={
                "nominal_milli": nominal * 1000,
                "borrowing_limit_milli": None if borrowing is None else borrowing * 1000,
                "lending_limit_milli": None if lending is None else lending * 1000,
            },
        )
        return quota


@dataclass
class World(Installation):
    """One whose cluster is simulated."""

    simulator: Simulator


def build(simulator: Simulator) -> World:
    return World(simulator=simulator, **vars(furnish(simulator.connect())))


def furnish(port: ClusterPort) -> Installation:
    """With what hardware there is in that cluster."""
    at = datetime.now(UTC)
    cluster = clusters.register(
        name="north", region="lab", actor="system:test", actor_name="test", at=at
    )
    clusters.heard(cluster=cluster)
    made = {
        "h100": Flavor(name="h100", kind=FlavorKind.WHOLE, model=H100),
        "a100": Flavor(name="a100", kind=FlavorKind.WHOLE, model=A100),
        "a100.1g": Flavor(name="a100.1g", kind=FlavorKind.MIG, model=A100, profile="1g.10gb"),
        "a100.3g": Flavor(name="a100.3g", kind=FlavorKind.MIG, model=A100, profile="3g.40gb"),
        "cpu": Flavor(name="cpu", kind=FlavorKind.CPU, isolation=Isolation.HARDWARE),
    }
    Flavor.objects.bulk_create(made.values())
    Rate.objects.bulk_create(
        Rate(
            flavor=flavor,
            price_per_hour=Decimal(3600),
            currency="EUR",
            during=DateTimeTZRange(at - timedelta(days=1), None),
        )
        for flavor in made.values()
    )
    user = User.objects.create_user("ada")
    projects = []
    for name in ("vision", "speech"):
        tenant = Tenant.objects.create(name=name, slug=name, created_at=at)
        projects.append(
            Project.objects.create(
                tenant=tenant,
                name=name,
                slug=name,
                namespace=f"berth-{name}",
                created_at=at,
                least_isolation=Isolation.NONE,
            )
        )
        Member.objects.create(user=user, tenant=tenant, role=Role.OWNER)
    world = Installation(
        port=port,
        cluster=cluster,
        flavors=made,
        vision=projects[0],
        speech=projects[1],
        ada=access.actor_for(user=user),
    )
    for name in made:
        world.quota(world.vision, name, 16)
        world.quota(world.speech, name, 16)
    world.sync()
    return world
