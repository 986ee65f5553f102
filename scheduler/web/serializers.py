"""What the scheduler's endpoints take and give. `parse` is the one way in for a submission: the
API, the portal's form and the CLI's body all go through it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework import serializers

from controlplane.api.fields import Boolean, Id, Integer, Moment, StrictSerializer, Text, Words
from controlplane.kernel.errors import Invalid, Problem
from scheduler.core.failures import REQUEUE_S
from scheduler.core.lifecycle import State
from scheduler.core.snapshot import Isolation
from scheduler.services import specs
from scheduler.services.specs import ArraySpec, WorkloadSpec
from scheduler.web import array_input, gate_input, submission
from scheduler.web.reading import Faults, Json
from scheduler.web.terms import RetriesIn
from scheduler.web.topologies import SetTopologyIn, TopologyIn
from scheduler.web.wishes import WishIn
from tenants.gating import MAX_GATES

MAX_BATCH = 500
BATCH_FIELDS = frozenset({"project", "workloads"})


def parse(data: Json) -> WorkloadSpec:
    """A submission without its project as a spec. Raises Invalid with every fault by its
    pointer."""
    spec, found = submission.read(data)
    if spec is None:
        raise refusal(found)
    return spec


def parse_submission(data: Json) -> tuple[UUID, WorkloadSpec]:
    """The body of POST /workloads: (project, spec). Raises Invalid."""
    if not isinstance(data, dict):
        raise refusal([Problem(pointer="", code="wrong-type", message="An object is wanted.")])
    project, found = _project(data)
    spec, faults = submission.read(data, beside=frozenset({"project"}))
    if spec is None or project is None:
        raise refusal(found + faults)
    return project, spec


def parse_array(data: Json) -> tuple[UUID, WorkloadSpec, ArraySpec]:
    """The body of POST /arrays: (project, an element, the array). Raises Invalid."""
    if not isinstance(data, dict):
        raise refusal([Problem(pointer="", code="wrong-type", message="An object is wanted.")])
    project, found = _project(data)
    outer = Faults()
    array = array_input.array(data, outer)
    spec, faults = submission.read(data, beside=array_input.ARRAY_FIELDS | {"project"})
    found += outer.found + faults
    if found or spec is None or project is None or array is None:
        raise refusal(found)
    return project, spec, array


def parse_dry_run(data: Json) -> tuple[UUID, WorkloadSpec, ArraySpec | None]:
    """The body of POST /workloads/dry-run: of a workload, or of an array. Raises Invalid."""
    if isinstance(data, dict) and not array_input.ARRAY_FIELDS.isdisjoint(data):
        return parse_array(data)
    return *parse_submission(data), None


def parse_batch(data: Json) -> tuple[UUID, list[WorkloadSpec]]:
    """The body of POST /workloads/batch: (project, specs). Raises Invalid."""
    if not isinstance(data, dict):
        raise refusal([Problem(pointer="", code="wrong-type", message="An object is wanted.")])
    project, found = _project(data)
    outer = Faults()
    outer.unknown(data, BATCH_FIELDS, "")
    found += outer.found
    items = data.get("workloads")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH:
        message = f"A list of 1 to {MAX_BATCH} workloads is wanted."
        raise refusal([*found, Problem(pointer="/workloads", code="invalid", message=message)])
    parsed = []
    for index, item in enumerate(items):
        spec, faults = submission.read(item, f"/workloads/{index}")
        found += faults
        if spec is not None:
            parsed.append(spec)
    pods = sum(pod_set.count for spec in parsed for pod_set in spec.pod_sets)
    if pods > specs.MAX_BATCH_PODS:
        message = f"{pods} pods in all workloads; at most {specs.MAX_BATCH_PODS} in one batch."
        found.append(Problem(pointer="/workloads", code="out-of-range", message=message))
    if found or project is None:
        raise refusal(found)
    return project, parsed


def _project(data: Mapping[str, Json]) -> tuple[UUID | None, list[Problem]]:
    value = data.get("project")
    try:
        if isinstance(value, str) and len(value) == 36:
            return UUID(value), []
    except ValueError:
        pass
    code = "required" if "project" not in data else "wrong-type"
    return None, [Problem(pointer="/project", code=code, message="A project's id is wanted.")]


def refusal(found: list[Problem]) -> Invalid:
    """One error for all of `found`; an answer names at most 50 of them."""
    first = found[0]
    where = f"{first.pointer}: " if first.pointer else ""
    rest = f" And {len(found) - 1} more." if len(found) > 1 else ""
    return Invalid(f"{where}{first.message}{rest}", problems=tuple(found[:50]))


class PodSetIn(StrictSerializer):
    """A group of like pods. Description only: `submission` reads it."""

    name = serializers.RegexField(rf"^{submission.POD_SET_NAME.pattern}$", max_length=40)
    count = Integer(low=1, high=specs.MAX_PODS, required=False, default=1)
    min_count = Integer(
        low=1,
        high=specs.MAX_PODS,
        required=False,
        help_text="How many start together or not at all; by default all of them. The others come"
        " and go while these run.",
    )
    cpu_milli = Integer(low=1, high=specs.MAX_CPU_MILLI, help_text="Thousandths of a core, a pod.")
    memory_mib = Integer(low=1, high=specs.MAX_MEMORY_MIB)
    gpu_count = Integer(
        low=0, high=specs.MAX_GPUS_PER_POD, help_text="GPUs or MIG slices a pod; 0 is CPU work."
    )
    gpu_milli = Integer(
        low=1,
        high=1000,
        required=False,
        default=1000,
        help_text="Below 1000, with gpu_count 1 and share flavors: thousandths of one GPU.",
    )
    flavors = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        max_length=submission.MAX_FLAVORS,
        help_text="Accepted flavors by name, the first choice first but in any order. Without any,"
        " and without a wish, those that the project prefers: whole GPUs, shares or CPU, as is"
        " asked.",
    )
    any_order = serializers.BooleanField(
        required=False,
        default=False,
        help_text="The named flavors are as welcome as each other: it starts on the one where that"
        " leaves most to others, within its own quotas first.",
    )
    wish = WishIn(required=False, allow_null=True)
    gpu_memory_mib = Integer(
        low=1,
        high=specs.MAX_DEVICE_MIB,
        required=False,
        allow_null=True,
        help_text="With gpu_count 1, instead of gpu_milli: the least part of each accepted flavor"
        " that has so much memory; of slices and whole GPUs, all of one.",
    )
    least_isolation = serializers.ChoiceField(
        choices=[each.value for each in Isolation],
        required=False,
        default=Isolation.NONE.value,
        help_text="No accepted flavor that keeps neighbours less apart is given; the project may"
        " ask for more.",
    )
    topology = SetTopologyIn(required=False, allow_null=True)
    image = serializers.RegexField(rf"^{submission.IMAGE.pattern}$", max_length=300)
    command = serializers.ListField(
        child=serializers.CharField(max_length=submission.MAX_WORD, allow_blank=True),
        required=False,
        max_length=submission.MAX_WORDS,
    )
    args = serializers.ListField(
        child=serializers.CharField(max_length=submission.MAX_WORD, allow_blank=True),
        required=False,
        max_length=submission.MAX_WORDS,
    )
    env = serializers.DictField(
        child=serializers.CharField(max_length=submission.MAX_ENV_VALUE, allow_blank=True),
        required=False,
        help_text="NVIDIA_* and the rendezvous names that Berth sets are refused.",
    )


class SpecIn(StrictSerializer):
    """A workload without its project. Description only: `submission` reads it."""

    name = Text(max_length=submission.MAX_NAME)
    priority_class = serializers.ChoiceField(
        choices=list(specs.PRIORITY_CLASSES),
        required=False,
        help_text="Left out: as the project's policy says, normal where it says nothing.",
    )
    preemptible = Boolean(
        required=False,
        default=True,
        help_text="What may not be preempted does not borrow: it starts within what its project"
        " and the tenants above it are guaranteed.",
    )
    move_to_better = Boolean(
        required=False,
        default=False,
        help_text="Stopped and started again, once a day at most, when an earlier of its"
        " flavors is free that nobody waits for, and little work since its last checkpoint is"
        " lost by it.",
    )
    run_time_limit_s = Integer(
        low=1,
        high=specs.MAX_RUN_TIME_S,
        required=False,
        allow_null=True,
        help_text="Left out: as the project's policy says, none where it says nothing.",
    )
    clusters = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        max_length=submission.MAX_CLUSTERS,
        help_text="Accepted clusters by name; left out or empty accepts any.",
    )
    labels = serializers.DictField(child=serializers.CharField(max_length=63), required=False)
    topology = TopologyIn(required=False, allow_null=True)
    depends_on: serializers.BaseSerializer[Any] = serializers.ListSerializer(  # Any: rows
        child=array_input.DependencyIn(), required=False, max_length=specs.MAX_DEPENDENCIES
    )
    gates: serializers.BaseSerializer[Any] = serializers.ListSerializer(  # Any: rows
        child=gate_input.GateIn(), required=False, max_length=MAX_GATES
    )
    retries = RetriesIn(required=False, allow_null=True)
    grace_s = Integer(
        low=specs.MIN_GRACE_S,
        high=specs.MAX_GRACE_S,
        required=False,
        default=specs.GRACE_S,
        help_text="Seconds from SIGTERM to SIGKILL whenever its pods are stopped.",
    )
    notice_s = Integer(
        low=0,
        high=specs.MAX_NOTICE_S,
        required=False,
        default=0,
        help_text="Seconds that it is told before its pods are stopped for the work of others. A"
        " checkpoint that it tells of meanwhile ends them.",
    )
    cluster_loss_requeue_s = Integer(
        low=REQUEUE_S[0],
        high=REQUEUE_S[1],
        required=False,
        allow_null=True,
        help_text="For so many seconds its cluster has to be silent; then it starts again"
        " elsewhere, which counts as no retry. What it holds there stays charged until its pods"
        " are seen gone. Left out: it waits for its cluster.",
    )
    pod_sets: serializers.BaseSerializer[Any] = serializers.ListSerializer(  # Any: rows
        child=PodSetIn(), min_length=1, max_length=specs.MAX_POD_SETS
    )


class WorkloadIn(SpecIn):
    project = Id()


class ArrayIn(array_input.ArrayFieldsIn, WorkloadIn):
    """Each of its workloads, and how many there are."""


class DryRunIn(ArrayIn):
    size = Integer(
        low=1,
        high=specs.MAX_ELEMENTS,
        required=False,
        help_text="Of an array: what is told is then of one element of it.",
    )


class BatchIn(StrictSerializer):
    project = Id()
    workloads: serializers.BaseSerializer[Any] = serializers.ListSerializer(  # Any: rows
        child=SpecIn(), min_length=1, max_length=MAX_BATCH
    )


class WorkloadsQuery(StrictSerializer):
    project = Id(required=False)
    array = Id(
        required=False,
        help_text="Its elements. Without it, its first element stands for each array: it is listed"
        " when any of them is in one of the states.",
    )
    state = Words(
        choices=[state.value for state in State],
        required=False,
        help_text="One state or several, with commas between.",
    )
    name = Text(
        required=False,
        max_length=submission.MAX_NAME,
        help_text="Exactly this name, of a workload or of an array.",
    )
    since = Moment(required=False, help_text="Submitted at or after.")
    until = Moment(required=False, help_text="Submitted before.")
    mine = serializers.ChoiceField(
        choices=["true", "false"], required=False, help_text="Only what the caller submitted."
    )
