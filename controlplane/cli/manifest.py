"""A plain Kubernetes Job or Pod manifest as a submission, or line by line why not. Pure.

Only what is listed here is taken, everything else is named with its line, and nothing is dropped
in silence: what converts means the same under Berth, or a note says what differs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from controlplane.cli import refusals
from controlplane.cli.quantities import cpu_milli, memory_mib, quantity
from controlplane.cli.reader import Reader
from controlplane.kernel.document import Node, Refused, load
from scheduler.core.failures import MOST_RETRIES, RETRIABLE, FailureClass
from scheduler.services import specs

PRIORITIES = tuple(specs.PRIORITY_CLASSES)
RESERVED_ENV = frozenset(
    {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "BERTH_MIN_PODS", "BERTH_MAX_PODS"}
)
"""As scheduler.web.submission; a test holds the two together."""
MAKERS = {
    "nvidia.com/gpu": "nvidia",
    "amd.com/gpu": "amd",
    "gpu.intel.com/xe": "intel",
    "gpu.intel.com/i915": "intel",
}
"""Of whole GPUs, by resource. As the Kubernetes adapter asks for them; a test holds the two
together."""
_GPU_MEMORY = "nvidia.com/gpumem"
"""HAMi's, in MiB of each GPU."""
_SIZES = (("cpu_milli", "cpu"), ("memory_mib", "memory"), ("gpu_memory_mib", _GPU_MEMORY))
_MIG = re.compile(r"nvidia\.com/mig-([0-9]+g\.[0-9]+gb(?:\.me)?)")
_KINDS = {("batch/v1", "Job"), ("v1", "Pod")}
_POD_SET = "/pod_sets/0"
_FINAL = {FailureClass.RUN_TIME_LIMIT, FailureClass.IDLE}
_AGAIN = [each.value for each in RETRIABLE if each not in _FINAL]
"""What a Job's backoffLimit counts."""

_MOST_CPU = str(specs.MAX_CPU_MILLI // 1000)
_MOST_MEMORY = f"{specs.MAX_MEMORY_MIB // 1024**2}Ti"

type Amounts = dict[str, tuple[Node, Fraction | None]]
"""By resource; None for one that can't be read."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`body` is a submission but for its project and flavors. `profile` is the MIG profile that it
    asks for, "" for whole GPUs; it says nothing when `gpus`, a pod's, is 0. `maker` is the GPUs'.

    `places` are the lines and fields that parts of the body come from, by JSON pointer; `notes`
    say, by line, what is taken but means less than it would to Kubernetes.
    """

    body: dict[str, Any]  # Any: JSON values
    profile: str
    gpus: int
    maker: str = ""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()


def read(text: bytes) -> Manifest:
    """Raises Refused with every reason by its line."""
    root = load(text)
    reader = _Reader()
    manifest = reader.manifest(root)
    if manifest is None or reader.found:
        raise Refused(reader.found)
    return manifest


class _Reader(Reader):
    """Reads a manifest; its methods return what could be read, refused or not."""

    def manifest(self, root: Node) -> Manifest | None:
        if not isinstance(root.value, dict):
            self.refuse(root, "a Job or a Pod is wanted")
            return None
        version, kind = root.value.get("apiVersion"), root.value.get("kind")
        if (version and version.value, kind and kind.value) not in _KINDS:
            at = kind or version or root
            self.refuse(at, "only a Job of batch/v1 or a Pod of v1 is accepted")
            return None
        top = self.fields(root, {"apiVersion", "kind", "metadata", "spec"}, refusals.TOP)
        name, labels = self.metadata(top.get("metadata"), root)
        if "spec" not in top:
            self.refuse(root, "this field is required", "spec")
            return None
        if kind is not None and kind.value == "Job":
            return self.job(top["spec"], name, labels)
        self.note(
            top["spec"],
            "a Pod: Kubernetes would not make it again; Berth tries again what its cluster did",
            "restartPolicy",
        )
        return self.pod(top["spec"], name, labels, count=1, limit_s=None)

    def metadata(self, node: Node | None, root: Node | None) -> tuple[str, dict[str, str]]:
        """Name and labels. `root` None: a template, whose name does not matter."""
        known = {"name", "labels"} if root is not None else {"labels"}
        fields = self.fields(node, known, refusals.METADATA)
        name = ""
        if root is not None:
            name = self.text(fields.get("name"), missing=node or root, name="name")
            self.comes_from("/name", fields.get("name"))
        labels = fields.get("labels")
        if labels is None:
            return name, {}
        if not isinstance(labels.value, dict):
            self.refuse(labels, f"a mapping is wanted, not {labels.kind}")
            return name, {}
        self.comes_from("/labels", labels)
        for key, child in labels.value.items():
            self.comes_from(f"/labels/{_escape(key)}", child)
        return name, {key: self.text(child) for key, child in labels.value.items()}

    def job(self, spec: Node, name: str, labels: dict[str, str]) -> Manifest | None:
        fields = self.fields(spec, refusals.JOB_TAKEN, refusals.JOB)
        parallelism = self.whole(fields.get("parallelism"), specs.MAX_PODS, default=1)
        completions = self.whole(fields.get("completions"), specs.MAX_PODS, default=1)
        if None not in (parallelism, completions) and completions != parallelism:
            at = fields.get("completions") or fields["parallelism"]
            self.refuse(
                at,
                f"{completions} completions with parallelism {parallelism}: all pods of a "
                "workload run at once, so the two have to be equal",
            )
        self.comes_from(f"{_POD_SET}/count", fields.get("parallelism"))
        retries = fields.get("backoffLimit")
        if retries is None:
            # A plain Job leaves it out, and refusing each of those would help nobody.
            self.note(
                spec,
                "left out: Kubernetes would run failed pods again, up to 6 times; Berth tries"
                " again what its cluster did, not what the work did",
                "backoffLimit",
            )
        self.comes_from("/retries", retries)
        mode = fields.get("completionMode")
        if mode is not None and mode.value != "NonIndexed":
            self.refuse(mode, "only NonIndexed; a pod finds its number in RANK")
        limit_s = self.run_time(fields)
        template = fields.get("template")
        if template is None:
            self.refuse(spec, "this field is required", "template")
            return None
        parts = self.fields(template, {"metadata", "spec"}, {})
        _, own = self.metadata(parts.get("metadata"), None)
        for key in sorted(own.keys() & labels.keys()):
            if own[key] != labels[key]:
                self.refuse(parts["metadata"], f"label {key} differs from the Job's", "labels")
        if "spec" not in parts:
            self.refuse(template, "this field is required", "spec")
            return None
        made = self.pod(parts["spec"], name, labels | own, count=parallelism or 0, limit_s=limit_s)
        if made is not None and retries is not None:
            limit = self.whole(retries, MOST_RETRIES, low=0)
            # Lost nodes have a limit of their own: only an empty list excludes them, too.
            made.body["retries"] = {"limit": limit, "on": _AGAIN if limit else []}
        return made

    def run_time(self, fields: Mapping[str, Node]) -> int | None:
        """A Job's or a Pod's limit in seconds."""
        node = fields.get("activeDeadlineSeconds")
        limit_s = self.whole(node, specs.MAX_RUN_TIME_S)
        if limit_s is not None:
            self.comes_from("/run_time_limit_s", node)
        return limit_s

    def pod(
        self, spec: Node, name: str, labels: dict[str, str], *, count: int, limit_s: int | None
    ) -> Manifest | None:
        fields = self.fields(spec, refusals.POD_TAKEN, refusals.POD)
        policy = fields.get("restartPolicy")
        if policy is None or policy.value != "Never":
            self.refuse(policy or spec, "Berth does not restart containers: say Never",
                        "" if policy else "restartPolicy")  # fmt: skip
        limits = [each for each in (limit_s, self.run_time(fields)) if each is not None]
        grace = fields.get("terminationGracePeriodSeconds")
        grace_s = self.whole(grace, specs.MAX_GRACE_S)
        self.comes_from("/grace_s", grace)
        priority = fields.get("priorityClassName")
        if priority is not None and priority.value not in PRIORITIES:
            self.refuse(priority, f"one of {', '.join(PRIORITIES)} is wanted")
        self.comes_from("/priority_class", priority)
        containers = fields.get("containers")
        if containers is None or not isinstance(containers.value, list) or not containers.value:
            self.refuse(containers or spec, "one container is wanted",
                        "" if containers else "containers")  # fmt: skip
            return None
        for extra in containers.value[1:]:
            self.refuse(extra, "a second container: only one a pod is accepted")
        pod_set, profile, maker = self.container(containers.value[0])
        body: dict[str, Any] = {
            "name": name,
            "pod_sets": [{"name": "main", "count": count} | pod_set],
        }
        if labels:
            body["labels"] = labels
        if limits:
            body["run_time_limit_s"] = min(limits)
        if grace_s is not None:
            body["grace_s"] = grace_s
        if priority is not None:
            body["priority_class"] = priority.value
        gpus = pod_set["gpu_count"]
        return Manifest(body, profile, gpus, maker, self.places, tuple(self.notes))

    def container(self, node: Node) -> tuple[dict[str, Any], str, str]:  # Any: JSON values
        """A pod set without name, count and flavors, the MIG profile, and who made the GPUs."""
        fields = self.fields(node, refusals.CONTAINER_TAKEN, refusals.CONTAINER)
        self.text(fields.get("name"), missing=node, name="name")
        pod_set: dict[str, Any] = {
            "image": self.text(fields.get("image"), missing=node, name="image")
        }
        for pointer in ("/pod_sets", _POD_SET, f"{_POD_SET}/flavors"):
            self.comes_from(pointer, node)
        self.comes_from(f"{_POD_SET}/image", fields.get("image"))
        for key in ("command", "args"):
            if key in fields:
                pod_set[key] = self.texts(fields[key])
                self.comes_from(f"{_POD_SET}/{key}", fields[key])
        if "env" in fields:
            pod_set["env"] = self.env(fields["env"])
        amounts, profile, maker = self.resources(fields.get("resources"), node)
        return pod_set | amounts, profile, maker

    def env(self, node: Node) -> dict[str, str]:
        values: dict[str, str] = {}
        if not isinstance(node.value, list):
            self.refuse(node, f"a list is wanted, not {node.kind}")
            return values
        self.comes_from(f"{_POD_SET}/env", node)
        for item in node.value:
            fields = self.fields(item, {"name", "value"}, refusals.ENV)
            name = self.text(fields.get("name"), missing=item, name="name")
            if name.upper().startswith("NVIDIA_"):
                self.refuse(item, f"{name}: which GPUs a pod sees is not its own choice")
            elif name in RESERVED_ENV:
                self.refuse(item, f"{name}: Berth sets it for each pod")
            elif name in values:
                self.refuse(item, f"{name} stands here twice")
            values[name] = self.text(fields.get("value"))
            self.comes_from(f"{_POD_SET}/env/{_escape(name)}", item)
        return values

    def resources(self, node: Node | None, container: Node) -> tuple[dict[str, int], str, str]:
        fields = self.fields(node, {"limits", "requests"}, refusals.RESOURCES)
        limits = self.amounts(fields.get("limits"))
        requests = self.amounts(fields.get("requests"))
        for name, (at, amount) in requests.items():
            known = name in limits
            if amount is not None and (not known or limits[name][1] not in (amount, None)):
                self.refuse(at, "a request has to equal its limit")
        wished = [name for name in limits if name in MAKERS or _MIG.fullmatch(name)]
        for name, (at, amount) in limits.items():
            if name not in {"cpu", "memory", _GPU_MEMORY, *wished} and amount is not None:
                self.refuse(at, refusals.RESOURCE)
        for name in wished[1:]:
            self.refuse(limits[name][0], "a second kind of GPU: one a pod is accepted")
        given = fields.get("limits")
        if given is None or isinstance(given.value, dict):
            for name in ("cpu", "memory"):
                if name not in limits:
                    self.refuse(node or container, "this limit is required", _path(node, name))
        gpus, profile, maker = 0, "", ""
        if wished:
            gpus = self.gpus(*limits[wished[0]])
            maker = MAKERS.get(wished[0], "nvidia")
            mig = _MIG.fullmatch(wished[0])
            # The device plugin writes "1g.10gb+me" as mig-1g.10gb.me.
            profile = mig.group(1).replace(".me", "+me") if mig else ""
        sizes = {
            "cpu_milli": self.size(limits, "cpu", cpu_milli, specs.MAX_CPU_MILLI, _MOST_CPU),
            "memory_mib": self.size(
                limits, "memory", memory_mib, specs.MAX_MEMORY_MIB, _MOST_MEMORY
            ),
            "gpu_count": gpus,
        }
        if _GPU_MEMORY in limits:
            if maker not in ("", "nvidia"):
                self.refuse(
                    limits[_GPU_MEMORY][0], "it goes with nvidia.com/gpu; say --gpu-memory"
                )
            most = specs.MAX_DEVICE_MIB
            sizes["gpu_memory_mib"] = self.size(limits, _GPU_MEMORY, ceil, most, f"{most} (MiB)")
        for key, name in _SIZES:
            if name in limits:
                self.comes_from(f"{_POD_SET}/{key}", limits[name][0])
        for name in wished[:1]:
            # What the hardware or the quota can't give is asked for here.
            for pointer in ("/pod_sets", f"{_POD_SET}/gpu_count", f"{_POD_SET}/flavors"):
                self.comes_from(pointer, limits[name][0])
        return sizes, profile, maker

    def gpus(self, node: Node, amount: Fraction | None) -> int:
        if amount is None:
            return 0
        bounds = f"from 1 to {specs.MAX_GPUS_PER_POD}"
        if amount.denominator != 1:
            self.refuse(node, f"a whole number {bounds} is wanted")
        elif not 1 <= amount <= specs.MAX_GPUS_PER_POD:
            self.refuse(node, f"out of range: {bounds}")
        return int(amount)

    def size(
        self,
        limits: Amounts,
        name: str,
        converted: Callable[[Fraction], int],
        most: int,
        said: str,
    ) -> int:
        """A limit in Berth's unit, `said` being the most of it in Kubernetes's words."""
        if name not in limits or (amount := limits[name][1]) is None:
            return 0
        if not 0 < converted(amount) <= most:
            self.refuse(limits[name][0], f"out of range: more than 0 and at most {said}")
        return converted(amount)

    def amounts(self, node: Node | None) -> Amounts:
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.refuse(node, f"a mapping is wanted, not {node.kind}")
            return {}
        found: Amounts = {}
        for name, child in node.value.items():
            value = child.value
            amount = quantity(value) if isinstance(value, str | int | float) else None
            if amount is None:
                self.refuse(child, "a quantity is wanted: 500m, 4, 16Gi")
            found[name] = child, amount
        return found


def _path(resources: Node | None, name: str) -> str:
    return f"limits.{name}" if resources is not None else f"resources.limits.{name}"


def _escape(name: str) -> str:
    """A member name as one step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
