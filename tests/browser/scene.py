"""A lively installation for looking at: three tenants, three clusters, work in every state, a month of
spend. Everything is relative to now and the same at each run.

What must not live here: what one test alone needs (tests/factories.py has the parts).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, ClusterState, Device, DeviceMode, Flavor, FlavorKind, Node
from controlplane.kernel.ids import uuid7
from scheduler.core.lifecycle import State
from scheduler.core.reasons import Reason, ReasonCode, describe
from scheduler.models import (
    Attempt,
    Estimate,
    Placement,
    PlacementSpan,
    PodSet,
    PodSetFlavor,
    Workload,
    WorkloadEvent,
)
from scheduler.services.specs import PRIORITY_CLASSES
from tenants import pricing
from tenants.models import Charge, Decision, Project, Quota, Rate, Role, UsageInterval, User
from tests import factories

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
    stage.history()
    _requests(stage)
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
    made.append(
        factories.flavor("a10-shared", FlavorKind.SHARE, model=A10, memory_mib=24 * 1024)
    )
    made.append(factories.cpu_flavor())
    return {flavor.name: flavor for flavor in made}


def _clusters(at: datetime) -> dict[str, Cluster]:
    north = factories.cluster(
        "north", simulated=True, region="Frankfurt", version="v1.36.1"
    )
    for number in range(1, 5):
        factories.node(north, f"north-gpu-{number}")
    for number in (5, 6):
        node = factories.node(north, f"north-mig-{number}", gpus=4, mode=DeviceMode.MIG_STATIC)
        for device in node.devices.all():
            for profile, start, end in STATIC:
                factories.device_slice(device, profile, start, end)
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


def reason(code: ReasonCode, **numbers: int | str) -> Reason:
    return Reason(code, tuple(sorted(numbers.items())))


@dataclass
class Stage:
    at: datetime
    people: dict[str, User]
    projects: dict[str, Project]
    flavors: dict[str, Flavor]
    clusters: dict[str, Cluster]
    rates: dict[str, Rate]

    def play(self) -> Workload:
        """What runs and waits now; the gang that runs."""
        gang = self.runs("llava-finetune-16", "ben", "Detection", "h100-80gb", pods=2, gpus=8,
                         nodes=("north-gpu-1", "north-gpu-2"), minutes=94)  # fmt: skip
        self.runs("tokenizer-ablation", "cleo", "Pretraining", "h100-80gb", gpus=4,
                  nodes=("north-gpu-3",), minutes=210)  # fmt: skip
        self.runs("era5-unet", "dora", "Downscaling", "h100-80gb", gpus=2,
                  nodes=("north-gpu-3",), minutes=31, priority="high")  # fmt: skip
        self.runs("sam-eval", "ada", "Segmentation", "h100-2g.20gb", nodes=("north-mig-5",),
                  span=(4, 6), minutes=12)  # fmt: skip
        self.runs("yolo-quantise", "ben", "Detection", "h100-1g.10gb", nodes=("north-mig-5",),
                  span=(6, 7), minutes=3)  # fmt: skip
        self.runs("detr-sweep-07", "ben", "Detection", "h100-3g.40gb", nodes=("north-mig-6",),
                  span=(0, 4), minutes=48)  # fmt: skip
        self.runs("mmlu-shard-3", "cleo", "Evaluation", "a100-1g.5gb", nodes=("south-mig-1",),
                  span=(0, 1), minutes=8)  # fmt: skip
        self.runs("bleu-regression", "cleo", "Pretraining", "a100-3g.20gb",
                  nodes=("south-mig-1",), span=(4, 8), minutes=19)  # fmt: skip
        self.runs("notebook-cleo", "cleo", "Evaluation", "a10-shared",
                  nodes=("south-shared-1",), span=(0, 250), minutes=71)  # fmt: skip
        self.runs("label-cleaning", "ben", "Detection", "cpu", gpus=0, nodes=("south-cpu-1",),
                  minutes=15)  # fmt: skip
        self.waits("dino-pretrain-32", "ada", "Detection", "h100-80gb", gpus=8, priority="high",
                   why=reason(ReasonCode.NO_FIT, flavor="h100-80gb", asked_milli=8000,
                              free_milli=9000, largest_free_milli=7000, pods_count=1,
                              pod_milli=8000, pod_cpu_milli=8000, pod_memory_mib=16_384),
                   p50=41, p90=86)  # fmt: skip
        self.waits("detr-sweep-08", "ben", "Detection", "h100-3g.40gb", p50=9, p90=33,
                   why=reason(ReasonCode.QUOTA_USED, flavor="h100-3g.40gb", asked_milli=1000,
                              used_milli=2000, nominal_milli=2000, borrowable_milli=0))  # fmt: skip
        self.waits("detr-sweep-09", "ben", "Detection", "h100-3g.40gb", priority="low",
                   why=reason(ReasonCode.BEHIND, admitted_count=2))  # fmt: skip
        self.waits("moe-router-scan", "cleo", "Pretraining", "h100-80gb", pods=2, gpus=8,
                   why=reason(ReasonCode.COHORT_USED, flavor="h100-80gb", asked_milli=16_000,
                              available_milli=4000, used_milli=4000, nominal_milli=8000),
                   p50=560, p90=1700)  # fmt: skip
        for number in range(14):
            self.ended(number)
        return gang

    def make(
        self, name: str, by: str, project: str, flavor: str, *, pods: int = 1, gpus: int = 1,
        priority: str = "normal", **fields: object,
    ) -> Workload:  # fmt: skip
        made = Workload.objects.create(
            project=self.projects[project], submitted_by=self.people[by], name=name,
            priority_class=priority, priority=PRIORITY_CLASSES[priority],
            run_time_limit_s=6 * 3600, **fields,
        )  # fmt: skip
        pod_set = PodSet.objects.create(
            workload=made, position=0, name="main", count=pods, min_count=pods, cpu_milli=8000,
            memory_mib=65_536, gpu_count=gpus, env={"HF_HOME": "/cache", "SEED": "7"},
            image="registry.example.org/vision/train:2.8.1",
            command=["torchrun", "--nproc-per-node=8", "train.py", "--config", "large.yaml"],
        )  # fmt: skip
        PodSetFlavor.objects.create(pod_set=pod_set, flavor=self.flavors[flavor], position=0)
        return made

    def runs(
        self, name: str, by: str, project: str, flavor: str, *, nodes: Sequence[str],
        minutes: int, pods: int = 1, gpus: int = 1, span: tuple[int, int] | None = None,
        priority: str = "normal",
    ) -> Workload:  # fmt: skip
        """Holds its spans since that many minutes."""
        start = self.at - timedelta(minutes=minutes)
        made = self.make(name, by, project, flavor, state=State.RUNNING, pods=pods, gpus=gpus,
                         priority=priority, submitted_at=start - timedelta(minutes=6),
                         admitted_at=start - timedelta(seconds=40), started_at=start)  # fmt: skip
        self.tell(made, [(-360, "PENDING", ""), (-40, "ADMITTED", f"to {nodes[0].split('-')[0]}"),
                         (-22, "BOUND", ""), (0, "RUNNING", "")], start)  # fmt: skip
        amount = gpus * 1000 or 8000
        if span is not None and self.flavors[flavor].kind == FlavorKind.SHARE:
            amount = span[1] - span[0]
            PodSet.objects.filter(workload=made).update(gpu_milli=amount)
        for rank in range(pods):
            node = Node.objects.get(name=nodes[rank % len(nodes)])
            placed = factories.place(
                made, node, self.flavors[flavor], amount_milli=amount, rank=rank,
                started_at=start, opened_at=start, pod_uid=str(uuid7()),
            )  # fmt: skip
            self.hold(placed, node, gpus, span)
        quota = Quota.objects.get(project=made.project, flavor=self.flavors[flavor])
        Quota.objects.filter(id=quota.id).update(used_milli=quota.used_milli + amount * pods)
        return made

    def hold(
        self, placed: Placement, node: Node, gpus: int, span: tuple[int, int] | None
    ) -> None:
        """Whole devices that are free, or that span of the first on which it is free."""
        taken = PlacementSpan.objects.filter(released_at__isnull=True)
        for device in node.devices.filter(usable=True).order_by("ordinal"):
            if not gpus:
                break
            here = [s.span for s in taken.filter(device=device)]
            start, end = span or (0, 1000)
            if not any(held.lower < end and start < held.upper for held in here):
                factories.span(placed, device, start, end)
                gpus -= 1

    def waits(
        self, name: str, by: str, project: str, flavor: str, *, why: Reason, pods: int = 1,
        gpus: int = 1, priority: str = "normal", p50: int | None = None, p90: int | None = None,
    ) -> None:  # fmt: skip
        """`p50` and `p90` in minutes; None is no basis."""
        submitted_at = self.at - timedelta(minutes=25)
        told = {"code": why.code, "text": describe(why), "numbers": dict(why.numbers)}
        made = self.make(name, by, project, flavor, pods=pods, gpus=gpus, priority=priority,
                         submitted_at=submitted_at, reason=told, reason_at=self.at)  # fmt: skip
        self.tell(made, [(0, "PENDING", "")], submitted_at)
        Estimate.objects.create(
            workload=made, as_of=self.at, p50_s=p50 and p50 * 60, p90_s=p90 and p90 * 60,
            basis="history" if p50 else "none", passes=20,
        )  # fmt: skip

    def ended(self, number: int) -> None:
        state = (State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.CANCELLED)[number % 4]
        end = self.at - timedelta(hours=3 * number + 2)
        start = end - timedelta(minutes=20 + 13 * number)
        made = self.make(f"detr-sweep-{number:02d}", ("ben", "ada")[number % 2], "Detection",
                         "h100-80gb", state=state, submitted_at=start - timedelta(minutes=4),
                         started_at=start, ended_at=end)  # fmt: skip
        self.tell(made, [(-200, "PENDING", ""), (-40, "ADMITTED", "to north"), (0, "RUNNING", ""),
                         (int((end - start).total_seconds()), state.value,
                          "exit code 1" if state == State.FAILED else "")], start)  # fmt: skip
        node = Node.objects.get(name="north-gpu-4")
        outcome = state.value.lower()
        Attempt.objects.create(workload=made, number=1, cluster=node.cluster, epoch=1,
                               created_at=start, ended_at=end, outcome=outcome)  # fmt: skip

    def tell(
        self, made: Workload, moves: Sequence[tuple[int, str, str]], start: datetime
    ) -> None:
        """A timeline: seconds from `start`, the state that began, a message."""
        before = ""
        for seconds, after, message in moves:
            WorkloadEvent.objects.create(
                workload=made, at=start + timedelta(seconds=seconds), kind="state",
                before=before, after=after, message=message,
            )  # fmt: skip
            before = after

    def history(self) -> None:
        """A month of charges: a usage interval a day, project and flavor."""
        usages, charges = [], []
        for (name, flavor), (nominal, _) in QUOTAS.items():
            for back in range(30):
                end = (self.at - timedelta(days=back)).replace(hour=0, minute=20)
                weekend = 0.35 if end.weekday() >= 5 else 1
                busy = (0.25 + 0.07 * ((back * 7 + len(name)) % 9)) * weekend
                during = DateTimeTZRange(end - timedelta(hours=max(1, round(20 * busy))), end)
                usage = UsageInterval(
                    project=self.projects[name], flavor=self.flavors[flavor],
                    cluster=self.clusters["north"], user=self.people["ada"],
                    placement_id=uuid7(), workload_id=uuid7(), amount_milli=nominal * 600,
                    during=during,
                )  # fmt: skip
                usages.append(usage)
                charges.append(self.charge(usage, self.rates[flavor]))
        UsageInterval.objects.bulk_create(usages)
        Charge.objects.bulk_create(charges)

    def charge(self, usage: UsageInterval, rate: Rate) -> Charge:
        held = usage.during.upper - usage.during.lower
        amount = pricing.charge(
            amount_milli=usage.amount_milli, held=held, price_per_hour=rate.price_per_hour
        )
        return Charge(
            usage=usage, project=usage.project, flavor=usage.flavor,
            workload_id=usage.workload_id, rate=rate, amount=amount, currency=rate.currency,
            ended_at=usage.during.upper,
        )  # fmt: skip


def _requests(stage: Stage) -> None:
    def asks(project: str, flavor: str, by: str, hours: int, **fields: object) -> UUID:
        made = factories.quota_request(
            stage.projects[project], stage.flavors[flavor], stage.people[by],
            requested_at=stage.at - timedelta(hours=hours), **fields,
        )  # fmt: skip
        return made.id

    asks("Detection", "h100-80gb", "ben", 3, nominal_milli=24_000,
         reason="The 32-GPU DINO run needs 24 guaranteed until 12 December; borrowing was taken"
         " back twice last week and cost us 41 GPU-hours.")  # fmt: skip
    asks("Evaluation", "a10-shared", "cleo", 26, nominal_milli=4000,
         reason="Two more notebooks for the interns who start on Monday.")  # fmt: skip
    asks("Segmentation", "h100-2g.20gb", "ada", 70, nominal_milli=6000,
         reason="Nightly regression on six slices.", decision=Decision.GRANTED,
         decided_by=stage.people["pia"], decided_at=stage.at - timedelta(hours=40),
         granted_milli=4000, note="Four now; ask again once the third MIG node is in.")  # fmt: skip
    asks("Detection", "cpu", "ben", 120, nominal_milli=256_000, reason="Faster label cleaning.",
         decision=Decision.DENIED, decided_by=stage.people["pia"],
         decided_at=stage.at - timedelta(hours=100),
         note="The CPU nodes are shared with Climate until March.")  # fmt: skip

