"""The work of `scene`: what runs, waits and ended, a month of charges, requests for quota."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from clusters.models import Cluster, Flavor, FlavorKind, Node
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
from tenants.models import Charge, Decision, Project, Quota, Rate, UsageInterval, User
from tests import factories


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
                              used_milli=2000, nominal_milli=2000,
                              borrowable_milli=0))  # fmt: skip
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

    def hold(self, placed: Placement, node: Node, gpus: int, span: tuple[int, int] | None) -> None:
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

    def tell(self, made: Workload, moves: Sequence[tuple[int, str, str]], start: datetime) -> None:
        """A timeline: seconds from `start`, the state that began, a message."""
        before = ""
        for seconds, after, message in moves:
            WorkloadEvent.objects.create(
                workload=made, at=start + timedelta(seconds=seconds), kind="state",
                before=before, after=after, message=message,
            )  # fmt: skip
            before = after

    def history(self, quotas: Mapping[tuple[str, str], tuple[int, int | None]]) -> None:
        """A month of charges: a usage interval a day for each quota of (nominal, borrowing)."""
        usages, charges = [], []
        for (name, flavor), (nominal, _) in quotas.items():
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


def requests(stage: Stage) -> None:
    """Two that are open, one granted in part, one denied."""

    def asks(project: str, flavor: str, by: str, hours: int, **fields: object) -> None:
        factories.quota_request(
            stage.projects[project], stage.flavors[flavor], stage.people[by],
            requested_at=stage.at - timedelta(hours=hours), **fields,
        )  # fmt: skip

    asks("Detection", "h100-80gb", "ben", 3, nominal_milli=24_000,
         reason="The 32-GPU DINO run needs 24 guaranteed until 12 December; borrowing was taken"
         " back twice last week and cost us 41 GPU-hours.")  # fmt: skip
    asks("Evaluation", "a10-shared", "cleo", 26, nominal_milli=4000,
         reason="Two more notebooks for the interns who start on Monday.")  # fmt: skip
    asks("Segmentation", "h100-2g.20gb", "ada", 70, nominal_milli=6000,
         reason="Nightly regression on six slices.", decision=Decision.GRANTED,
         decided_by=stage.people["pia"], decided_at=stage.at - timedelta(hours=40),
         granted_milli=4000,
         note="Four now; ask again once the third MIG node is in.")  # fmt: skip
    asks("Detection", "cpu", "ben", 120, nominal_milli=256_000, reason="Faster label cleaning.",
         decision=Decision.DENIED, decided_by=stage.people["pia"],
         decided_at=stage.at - timedelta(hours=100),
         note="The CPU nodes are shared with Climate until March.")  # fmt: skip
