"""The one parser of a submission: JSON values to a WorkloadSpec, or every fault with its pointer.

Plain functions: a batch has up to 500 of these, and nested serializers cost ten times as much. The
serializers describe the same fields for OpenAPI; a test holds the two together.
"""

import re
from collections.abc import Mapping

from controlplane.kernel import text
from controlplane.kernel.errors import Problem
from controlplane.kernel.text import shown
from scheduler.services import specs
from scheduler.services.specs import PodSetSpec, WorkloadSpec
from scheduler.web import array_input, gate_input, terms, topologies, wishes
from scheduler.web.reading import MISSING, Faults, Json
from tenants.labels import label_fault

MAX_NAME = 100
MAX_CLUSTERS = 32
MAX_FLAVORS = 16
MAX_WORDS = 256
MAX_WORD = 4096
MAX_ENV_VALUE = 8192
MAX_LABELS = 32
POD_SET_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,299}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
RENDEZVOUS = frozenset(
    {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "BERTH_MIN_PODS", "BERTH_MAX_PODS"}
)
"""Environment that Berth itself gives to a gang's pods."""
OF_ARRAYS = frozenset({"BERTH_ARRAY_INDEX", "BERTH_ARRAY_SIZE"})
"""Environment that Berth itself gives to the pods of an array's elements."""

WORKLOAD_FIELDS = frozenset(
    {"name", "priority_class", "preemptible", "run_time_limit_s", "clusters", "labels", "topology",
     "move_to_better", "retries", "grace_s", "notice_s", "cluster_loss_requeue_s", "depends_on",
     "gates", "pod_sets"}
)  # fmt: skip
POD_SET_FIELDS = frozenset(
    {"name", "count", "min_count", "cpu_milli", "memory_mib", "gpu_count", "gpu_milli", "flavors",
     "any_order", "wish", "gpu_memory_mib", "least_isolation", "topology", "image", "command",
     "args", "env"}
)  # fmt: skip


def read(
    data: Json, root: str = "", *, beside: frozenset[str] = frozenset()
) -> tuple[WorkloadSpec | None, list[Problem]]:
    """The spec, or None and everything that is wrong, pointers below `root`. `beside` are fields
    of the same object that the caller reads."""
    faults = Faults()
    if not isinstance(data, dict):
        faults.add(root, "wrong-type", "An object is wanted.")
        return None, faults.found
    faults.unknown(data, WORKLOAD_FIELDS | beside, root)
    name = _name(data, root, faults)
    priority_class = data.get("priority_class", "")
    unsaid = "priority_class" not in data
    if not unsaid and priority_class not in list(specs.PRIORITY_CLASSES):
        known = ", ".join(specs.PRIORITY_CLASSES)
        faults.add(f"{root}/priority_class", "invalid", f"One of {known} is wanted.")
    preemptible = data.get("preemptible", True)
    if not isinstance(preemptible, bool):
        faults.add(f"{root}/preemptible", "wrong-type", "true or false is wanted.")
    move_to_better = data.get("move_to_better", False)
    if not isinstance(move_to_better, bool):
        faults.add(f"{root}/move_to_better", "wrong-type", "true or false is wanted.")
    elif move_to_better and preemptible is False:
        message = "What may not be preempted is not moved."
        faults.add(f"{root}/move_to_better", "invalid", message)
    limit_s = None
    if data.get("run_time_limit_s") is not None:
        limit_s = faults.integer(
            data, "run_time_limit_s", root, 1, specs.MAX_RUN_TIME_S, default=None
        )
    clusters = faults.items(data, "clusters", root, MAX_CLUSTERS, _plain_fault)
    faults.once(clusters, f"{root}/clusters")
    labels = faults.mapping(data, "labels", root, MAX_LABELS, label_fault)
    topology = topologies.topology(data, root, faults)
    depends_on = array_input.depends_on(data, root, faults)
    gates = gate_input.gates(data, root, faults)
    retries = terms.retries(data, root, faults)
    grace_s = faults.integer(
        data, "grace_s", root, specs.MIN_GRACE_S, specs.MAX_GRACE_S, specs.GRACE_S
    )
    notice_s = faults.integer(data, "notice_s", root, 0, specs.MAX_NOTICE_S, 0)
    requeue_s = terms.cluster_loss_requeue_s(data, root, faults)
    pod_sets = _pod_sets(data, root, faults)
    if faults.found or grace_s is None or notice_s is None:
        return None, faults.found
    return (
        WorkloadSpec(
            name=name,
            pod_sets=pod_sets,
            priority_class=priority_class,
            preemptible=preemptible,
            move_to_better=move_to_better,
            run_time_limit_s=limit_s,
            clusters=clusters,
            labels=labels,
            topology=topology,
            depends_on=depends_on,
            gates=gates,
            retries=retries,
            grace_s=grace_s,
            notice_s=notice_s,
            cluster_loss_requeue_s=requeue_s,
        ),
        [],
    )


def _name(data: Mapping[str, Json], root: str, faults: Faults) -> str:
    value = data.get("name", MISSING)
    pointer = f"{root}/name"
    if value is MISSING:
        faults.add(pointer, "required", "This field is required.")
    elif not isinstance(value, str):
        faults.add(pointer, "wrong-type", "A string is wanted.")
    elif fault := text.fault(value):
        faults.add(pointer, "bad-character", f"{fault}: not accepted in a name.")
    elif not 1 <= len(value.strip()) <= MAX_NAME:
        faults.add(pointer, "invalid", f"A name has 1 to {MAX_NAME} characters.")
    else:
        return value.strip()
    return ""


def _pod_sets(data: Mapping[str, Json], root: str, faults: Faults) -> tuple[PodSetSpec, ...]:
    value = data.get("pod_sets", MISSING)
    pointer = f"{root}/pod_sets"
    if value is MISSING:
        faults.add(pointer, "required", "This field is required.")
    elif not isinstance(value, list):
        faults.add(pointer, "wrong-type", "A list is wanted.")
    elif not 1 <= len(value) <= specs.MAX_POD_SETS:
        faults.add(pointer, "invalid", f"There have to be 1 to {specs.MAX_POD_SETS} pod sets.")
    else:
        found = [_pod_set(item, f"{pointer}/{index}", faults) for index, item in enumerate(value)]
        pod_sets = tuple(pod_set for pod_set in found if pod_set is not None)
        if len(pod_sets) == len(value):
            faults.once(tuple(pod_set.name for pod_set in pod_sets), pointer)
            pods = sum(pod_set.count for pod_set in pod_sets)
            if pods > specs.MAX_PODS:
                faults.add(
                    pointer, "out-of-range", f"{pods} pods in sum; at most {specs.MAX_PODS}."
                )
        return pod_sets
    return ()


def _pod_set(data: Json, root: str, faults: Faults) -> PodSetSpec | None:
    if not isinstance(data, dict):
        faults.add(root, "wrong-type", "An object is wanted.")
        return None
    before = len(faults.found)
    faults.unknown(data, POD_SET_FIELDS, root)
    name = faults.string(
        data, "name", root, POD_SET_NAME, "1 to 40 of a-z, 0-9 and -, like a Kubernetes name"
    )
    count = faults.integer(data, "count", root, 1, specs.MAX_PODS, 1) or 0
    min_count = faults.integer(data, "min_count", root, 1, specs.MAX_PODS, count or 1) or 0
    if count and min_count > count:
        faults.add(
            f"{root}/min_count", "out-of-range", f"{min_count} is more than count, {count}."
        )
    cpu_milli = faults.integer(data, "cpu_milli", root, 1, specs.MAX_CPU_MILLI, None) or 0
    memory_mib = faults.integer(data, "memory_mib", root, 1, specs.MAX_MEMORY_MIB, None) or 0
    gpu_count = faults.integer(data, "gpu_count", root, 0, specs.MAX_GPUS_PER_POD, None) or 0
    gpu_milli = faults.integer(data, "gpu_milli", root, 1, 1000, 1000) or 0
    if gpu_milli != 1000 and gpu_count != 1:
        faults.add(f"{root}/gpu_milli", "invalid", "A share of a GPU needs gpu_count 1.")
    gpu_memory_mib = wishes.gpu_memory_mib(data, root, faults)
    least_isolation = wishes.least_isolation(data, root, faults)
    flavors = faults.items(data, "flavors", root, MAX_FLAVORS, _plain_fault)
    faults.once(flavors, f"{root}/flavors")
    any_order = wishes.any_order(data, root, faults)
    wish = wishes.wish(data, root, faults, gpu_count=gpu_count, gpu_milli=gpu_milli)
    topology = topologies.of_set(data, root, faults, name=name, count=count, min_count=min_count)
    image = faults.string(data, "image", root, IMAGE, "an image reference of up to 300 characters")
    command = faults.items(data, "command", root, MAX_WORDS, _word_fault)
    args = faults.items(data, "args", root, MAX_WORDS, _word_fault)
    env = faults.mapping(data, "env", root, specs.MAX_ENV, _env_fault)
    if len(faults.found) != before:
        return None
    return PodSetSpec(
        name, count, min_count, cpu_milli, memory_mib, gpu_count, gpu_milli, flavors, image,
        command, args, env, wish, topology=topology, gpu_memory_mib=gpu_memory_mib,
        least_isolation=least_isolation, any_order=any_order,
    )  # fmt: skip


def _plain_fault(value: str) -> str | None:
    return None if PLAIN_NAME.fullmatch(value) else f"{shown(value)} is not a name of this kind."


def _word_fault(value: str) -> str | None:
    if len(value) > MAX_WORD:
        return f"{len(value)} characters are too many; at most {MAX_WORD}."
    return "NUL is not accepted here." if "\0" in value else None


def _env_fault(name: str, value: str) -> tuple[str, str] | None:
    if not ENV_NAME.fullmatch(name):
        return "invalid", f"{shown(name)} is not a name of letters, digits and underscores."
    if name.upper().startswith("NVIDIA_"):
        return "reserved-env", f"{name} is refused: which GPUs a pod sees is not its own choice."
    if name in RENDEZVOUS:
        return "reserved-env", f"{name} is refused: Berth sets it for each pod of a gang."
    if name in OF_ARRAYS:
        return "reserved-env", f"{name} is refused: Berth sets it for each element of an array."
    if len(value) > MAX_ENV_VALUE:
        return "invalid", f"{len(value)} characters are too many; at most {MAX_ENV_VALUE}."
    return ("invalid", "NUL is not accepted here.") if "\0" in value else None
