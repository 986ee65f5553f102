"""What the demo's people do all day: a burst of work at first, then some more now and then.

They submit through the same service as everybody, and a project with enough pending work rests.
What must not live here: any other way to make a row.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from clusters.models import Device, Node
from controlplane.demo.seed import CLUSTERS
from controlplane.kernel.errors import AppError
from scheduler.core.lifecycle import State
from scheduler.models import LIVE, Workload
from scheduler.services import workloads
from scheduler.services.specs import PodSetSpec, WorkloadSpec
from tenants import access
from tenants.models import Project, User

logger = logging.getLogger(__name__)

ENOUGH_PENDING = 4
"""Pending workloads at which a project's people stop submitting."""
EVERY_S = 4.0


@dataclass(frozen=True, slots=True)
class Habit:
    """A kind of work that somebody submits again and again. `seconds` are taken in turn."""

    user: str
    project: str
    name: str
    flavors: tuple[str, ...]
    seconds: tuple[int, ...]
    gpus: int = 1
    count: int = 1
    gpu_milli: int = 1000
    priority_class: str = "normal"
    preemptible: bool = True


# Somebody of each tenant begins with seconds only, and together they ask for more than there is:
# the pages show finished, running and waiting work of all three before half a minute has passed.
HABITS = (
    Habit("ben", "segmentation", "train-unet", ("a100-80gb",), (60, 90, 150), gpus=4, count=2),
    Habit("dora", "downscaling", "ensemble", ("h100-80gb",), (120, 80), gpus=8, count=2),
    Habit("cleo", "pretraining", "lm-7b", ("h100-80gb",), (100, 140), gpus=8, count=2),
    Habit("ben", "segmentation", "notebook", ("a100-80gb.1g.10gb",), (6, 45, 75, 20)),
    Habit("ada", "grasping", "rollouts", ("a100-80gb",), (70, 110), gpus=8),
    Habit("cleo", "serving", "batch-infer", ("l4.share", "t4.share"), (5, 50, 30), gpu_milli=250),
    Habit("dora", "downscaling", "regrid", ("cpu",), (7, 40, 25), gpus=0, count=3),
    Habit("ada", "grasping", "sim-sweep", ("t4", "l4"), (35, 60), gpus=1, count=2),
    Habit("cleo", "serving", "evaluate", ("h100-80gb.1g.10gb",), (35, 55, 25)),
    Habit("ben", "segmentation", "ablation", ("a100-80gb.3g.40gb",), (80, 50)),
    Habit("dora", "downscaling", "validate", ("a100-80gb.1g.10gb",), (8, 30, 15)),
    Habit("cleo", "pretraining", "tokenize", ("cpu",), (20, 35), gpus=0, count=2),
    Habit("ada", "grasping", "broken-job", ("t4.share",), (0,), gpu_milli=500),
    Habit("ben", "segmentation", "deadline", ("h100-80gb",), (40,), 8, priority_class="high"),
)


def spec(habit: Habit, seconds: int, number: int) -> WorkloadSpec:
    """The habit's next workload. Zero seconds is work that fails."""
    pods = PodSetSpec(
        name="main",
        count=habit.count,
        min_count=habit.count,
        cpu_milli=2000,
        memory_mib=4096,
        gpu_count=habit.gpus,
        gpu_milli=habit.gpu_milli,
        flavors=habit.flavors,
        image="busybox:1.37",
        command=("sleep", str(seconds)) if seconds else ("false",),
    )
    return WorkloadSpec(
        name=f"{habit.name}-{number}",
        pod_sets=(pods,),
        priority_class=habit.priority_class,
        preemptible=habit.preemptible,
        run_time_limit_s=max(2 * seconds, 60),
    )


def ready() -> bool:
    """Whether the clusters' hardware is known, which a submission is checked against."""
    listed = Node.objects.values("cluster").distinct().count()
    return listed >= len(CLUSTERS) and Device.objects.exists()


def submissions() -> Iterator[tuple[Habit, WorkloadSpec]]:
    """All habits in turn, for ever."""
    for number in itertools.count(1):
        for habit in HABITS:
            yield habit, spec(habit, habit.seconds[(number - 1) % len(habit.seconds)], number)


def submit(habit: Habit, wanted: WorkloadSpec, *, at: datetime) -> bool:
    """As that person; False when the project has enough pending, or it was refused."""
    project = Project.objects.get(slug=habit.project)
    pending = Workload.objects.filter(LIVE, project=project, state=State.PENDING).count()
    if pending >= ENOUGH_PENDING:
        return False
    actor = access.actor_for(user=User.objects.get(username=habit.user))
    try:
        workloads.submit(actor=actor, project=project, specs=[wanted], at=at)
    except AppError as error:
        logger.warning("%s: %s", wanted.name, error.message)
        return False
    return True


def run(*, stop: threading.Event, now: Callable[[], datetime]) -> None:
    """Submit until told to stop: two rounds of everything at once, then one thing at a time."""
    while not ready():
        if stop.wait(0.3):
            return
    for count, (habit, wanted) in enumerate(submissions()):
        submit(habit, wanted, at=now())
        if count >= 2 * len(HABITS) and stop.wait(EVERY_S):
            return
