"""Attacks on how far work is kept from its neighbours, and on what it asks of device memory."""

from clusters.models import Flavor, FlavorKind
from scheduler.models import Placement, PodSet, Workload
from tenants.models import Project
from tests.constraints.attack import Attack
from tests.constraints.moves import Move, Statement, change, insert_like
from tests.constraints.rows import make


def _beside_others(*, given: str, of_project: str, of_pods: str) -> Move:
    """INSERT of a second pod on a share."""

    def prepare() -> Statement:
        share = make(Flavor, kind=FlavorKind.SHARE, model="T4", profile="", isolation=given)
        work = make(Workload, project=make(Project, least_isolation="none"))
        first = make(Placement, flavor=share, workload=work)
        Project.objects.filter(id=work.project_id).update(least_isolation=of_project)
        PodSet.objects.filter(id=first.pod_set_id).update(least_isolation=of_pods)
        return insert_like(first, rank=2, pod_name="the-second")

    return prepare


ATTACKS = (
    Attack(
        "placement_isolated",
        "it shares a device by time-slicing, and its project accepts memory limits",
        _beside_others(given="none", of_project="memory", of_pods="none"),
    ),
    Attack(
        "placement_isolated",
        "it shares a device, and its project accepts hardware alone",
        _beside_others(given="memory", of_project="hardware", of_pods="none"),
    ),
    Attack(
        "placement_isolated",
        "it shares a device, and its pods ask for hardware",
        _beside_others(given="memory", of_project="none", of_pods="hardware"),
    ),
    Attack(
        "project_isolation_known",
        "a project accepts what nobody knows",
        change(Project, least_isolation="glass"),
    ),
    Attack(
        "pod_set_isolation_known",
        "pods accept what nobody knows",
        change(PodSet, least_isolation="glass"),
    ),
    *(
        Attack("pod_set_memory_of_one_device", sentence, change(PodSet, given, gpu_memory_mib=mib))
        for sentence, mib, given in (
            ("no memory of a device is asked for", 0, {"gpu_count": 1}),
            ("memory of two devices is asked for", 1, {"gpu_count": 2}),
            ("memory of half a device is asked for", 1, {"gpu_count": 1, "gpu_milli": 500}),
            ("it asks for memory, and wishes", 1, {"gpu_count": 1, "least_memory_mib": 1}),
        )
    ),
)
