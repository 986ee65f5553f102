"""A lively installation to look at: three tenants, three clusters, work in every state, a month
of spend. Everything is relative to now and the same at each run.

What must not live here: what one test alone needs (tests/factories.py has the parts).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, ClusterState, Device, DeviceMode, Flavor, FlavorKind
from clusters.port import Verdict
from scheduler.core.lifecycle import State
from scheduler.models import Workload
from tenants.models import Project, Rate, Role, User
from tests import factories
from tests.browser.stage import Stage, requests

H100 = "NVIDIA-H100-80GB-HBM3"
A100 = "NVIDIA-A100-SXM4-40GB"
A10 = "NVIDIA-A10"
STATIC = (("3g.40gb", 0, 4), ("2g.20gb", 4, 6), ("1g.10gb", 6, 7))


@dataclass
class Scene:
    """Handles to what tests click on."""

    at: datetime
    people: dict[str, User]
    projects: dict[str, Project]
    flavors: dict[str, Flavor]
    clusters: dict[str, Cluster]
    running: Workload
    waiting: Workload
    ended: Workload


def build(*, at: datetime) -> Scene:
    """Make it all in an empty database."""
    people, projects = _people()
    flavors = _flavors()
    clusters = _clusters(at)
    rates = {name: _rate(flavors[name], price, at) for name, price in PRICES.items()}
    for (project, flavor), (nominal, borrowing) in QUOTAS.items():
        factories.quota(
            projects[project], flavors[flavor], nominal * 1000,
            borrowing_limit_milli=None if borrowing is None else borrowing * 1000,
        )  # fmt: skip
    stage = Stage(at, people, projects, flavors, clusters, rates)
    running = stage.play()
    stage.history(QUOTAS)
    requests(stage)
    waiting = Workload.objects.filter(state=State.PENDING).order_by("id")[0]
    ended = Workload.objects.filter(state=State.SUCCEEDED).order_by("id")[0]
    return Scene(at, people, projects, flavors, clusters, running, waiting, ended)


PRICES = {
    "h100-80gb": "2.95", "h100-3g.40gb": "1.48", "h100-2g.20gb": "0.74", "h100-1g.10gb": "0.37",
    "a100-1g.5gb": "0.21", "a100-3g.20gb": "0.82", "a10-shared": "0.60", "cpu": "0.035",
}  # fmt: skip
QUOTAS = {
    ("Detection", "h100-80gb"): (16, 8), ("Detection", "h100-1g.10gb"): (4, 4),
    ("Detection", "h100-3g.40gb"): (2, 0), ("Detection", "cpu"): (64, None),
    ("Segmentation", "h100-80gb"): (4, 4), ("Segmentation", "h100-2g.20gb"): (2, 2),
    ("Pretraining", "h100-80gb"): (8, None), ("Pretraining", "a100-3g.20gb"): (4, 4),
    ("Evaluation", "a100-1g.5gb"): (14, 0), ("Evaluation", "a10-shared"): (2, 2),
    ("Downscaling", "h100-80gb"): (4, 0), ("Downscaling", "cpu"): (96, 32),
}  # fmt: skip


def _people() -> tuple[dict[str, User], dict[str, Project]]:
    institute = factories.tenant("Aurora Institute")
    vision, language, climate = (
        factories.tenant(name, parent=institute)
        for name in ("Vision Lab", "Language Lab", "Climate Lab")
    )
    places = {
        "Detection": vision, "Segmentation": vision, "Pretraining": language,
        "Evaluation": language, "Downscaling": climate,
    }  # fmt: skip
    projects = {name: factories.project(tenant, name) for name, tenant in places.items()}
    people = {n: factories.user(n) for n in ("ada", "ben", "cleo", "dora", "oz", "pia", "vik")}
    factories.member(people["ada"], Role.OWNER, at=vision)
    factories.member(people["ben"], Role.MEMBER, at=projects["Detection"])
    factories.member(people["cleo"], Role.MEMBER, at=language)
    factories.member(people["dora"], Role.MEMBER, at=climate)
    factories.member(people["vik"], Role.VIEWER, at=vision)
    factories.member(people["oz"], Role.OPERATOR)
    factories.member(people["pia"], Role.APPROVER)
    return people, projects


def _flavors() -> dict[str, Flavor]:
    made = [factories.flavor("h100-80gb", memory_mib=81_920)]
    for profile, gib in (("3g.40gb", 40), ("2g.20gb", 20), ("1g.10gb", 10)):
        made.append(
            factories.flavor(
                f"h100-{profile}", FlavorKind.MIG, profile=profile, memory_mib=gib * 1024
            )
        )
    for profile, gib in (("3g.20gb", 20), ("1g.5gb", 5)):
        made.append(
            factories.flavor(
                f"a100-{profile}", FlavorKind.MIG, model=A100, profile=profile,
                memory_mib=gib * 1024,
            )
        )  # fmt: skip
    made.append(factories.flavor("a10-shared", FlavorKind.SHARE, model=A10, memory_mib=24 * 1024))
    made.append(factories.cpu_flavor())
    return {flavor.name: flavor for flavor in made}


def _clusters(at: datetime) -> dict[str, Cluster]:
    north = factories.cluster("north", simulated=True, region="Frankfurt", version="v1.36.1")
    for number in range(1, 5):
        factories.node(north, f"north-gpu-{number}")
    for number in (5, 6):
        node = factories.node(north, f"north-mig-{number}", gpus=4, mode=DeviceMode.MIG_STATIC)
        for device in node.devices.all():
            for profile, start, end in STATIC:
                factories.device_slice(device, profile, start, end)
    factories.probe(north, Verdict.WORKS, Verdict.WARNING, Verdict.FAILS)
    south = factories.cluster("south", simulated=True, region="Turin", version="v1.35.4")
    for number in (1, 2):
        factories.node(
            south, f"south-mig-{number}", gpus=4, model=A100, mode=DeviceMode.MIG_DYNAMIC
        )
    factories.node(
        south, "south-shared-1", gpus=4, model=A10, share_isolation="none", share_replicas=10
    )
    factories.node(south, "south-cpu-1", gpus=0, cpu_milli=128_000)
    Device.objects.filter(node__name="north-gpu-4", ordinal=7).update(usable=False)
    east = factories.cluster(
        "east", simulated=True, state=ClusterState.DEGRADED, region="Warsaw",
        last_error="No answer from the API server within 10 s.",
    )  # fmt: skip
    factories.node(east, "east-gpu-1")
    Cluster.objects.update(seen_at=at)
    Cluster.objects.filter(id=east.id).update(seen_at=at - timedelta(minutes=4))
    return {cluster.name: cluster for cluster in Cluster.objects.all()}


def _rate(flavor: Flavor, price: str, at: datetime) -> Rate:
    during = DateTimeTZRange(at - timedelta(days=365), None)
    return factories.rate(flavor, price, during=during)
