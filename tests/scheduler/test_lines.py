"""What waits and what is active, summed up for each project."""

from dataclasses import replace

from clusters.models import FlavorKind, Isolation
from scheduler.models import Placement
from scheduler.selectors import lines
from scheduler.selectors.lines import Load
from scheduler.services import workloads
from tenants.models import Project, Quota
from tests import factories
from tests.factories import AT
from tests.flows.world import spec
from tests.scheduler.stage import Stage

KINDS = (
    ("slot", Isolation.NONE, 10_000),
    ("small", Isolation.MEMORY, 4_000),
    ("mps", Isolation.MEMORY, 16_000),
    ("large", Isolation.MEMORY, 24_000),
)
"""Flavors by name, with what isolates them and the memory of their devices."""


def submit(stage: Stage, name: str, *, count: int = 1) -> None:
    """Each of its pods asks for 5,000 MiB of any of them."""
    asked = spec(name=name, count=count)
    [pods] = asked.pod_sets
    pods = replace(pods, flavors=tuple(name for name, *_ in KINDS), gpu_memory_mib=5_000)
    workloads.submit(
        actor=stage.actor, project=stage.project, specs=[replace(asked, pod_sets=(pods,))], at=AT
    )


def test_memory_of_a_device_counts_as_what_is_charged_for_it(stage: Stage) -> None:
    for name, isolation, memory_mib in KINDS:
        flavor = factories.flavor(
            name, FlavorKind.SHARE, model=name, isolation=isolation, memory_mib=memory_mib
        )
        factories.node(
            stage.cluster, name, gpus=2, model=name, share_isolation=isolation, share_replicas=1000
        )
        factories.quota(stage.project, flavor, 2000)
    Project.objects.update(least_isolation=Isolation.MEMORY)
    submit(stage, "one")
    submit(stage, "gang", count=2)
    stage.submit("whole", gpus=2)
    [queue] = lines.queues(actor=stage.actor, at=AT).queues
    assert queue.waiting == Load(3, 3 * 313 + 2000)  # of 16,000 MiB
    Quota.objects.filter(flavor__name="mps").update(nominal_milli=0, borrowing_limit_milli=0)
    stage.hardware_changed()
    stage.cycle()
    [queue] = lines.queues(actor=stage.actor, at=AT).queues
    placed = sum(Placement.objects.values_list("amount_milli", flat=True))
    assert queue.active == Load(3, placed)
    assert placed == 3 * 209 + 2000  # of 24,000 MiB
