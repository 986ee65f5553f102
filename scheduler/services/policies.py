"""What policies say of submissions: their defaults put in, and what they refuse (ADR 0103)."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from controlplane.kernel.errors import Problem
from scheduler.core.quota.equivalents import DEVICE_MILLI, counts_milli
from scheduler.core.snapshot import FlavorView
from scheduler.core.units import ONE_MILLI
from scheduler.services.admissibility import pod_milli
from scheduler.services.specs import PodSetSpec, WorkloadSpec
from tenants import policy
from tenants.models import Project
from tenants.policy import Asked, Defaults, Refusal, Said
from tenants.selectors import policies as selectors

_BERTHS_OWN = frozenset({"any_order", "clusters", "retries"})
"""What nobody said of work whose pods others made."""
_UNSAID = {
    each.name: each.default_factory() if callable(each.default_factory) else each.default
    for each in (*fields(PodSetSpec), *fields(WorkloadSpec))
    if each.name in policy.FIELDS and each.name != "min_count"
} | {"gpu_milli": ONE_MILLI}


def with_defaults(told: Defaults, spec: WorkloadSpec) -> WorkloadSpec:
    """What it does not say is as the policies have it."""
    return replace(
        spec,
        run_time_limit_s=spec.run_time_limit_s or told.run_time_limit_s,
        priority_class=spec.priority_class or told.priority_class,
        labels={**told.labels, **spec.labels},
    )


def without_defaults(told: Defaults, spec: WorkloadSpec) -> WorkloadSpec:
    """The reverse: what it has as the policies have it counts as not said, for of what is stored
    nobody knows any more whether it was."""
    limit_s, name = spec.run_time_limit_s, spec.priority_class
    return replace(
        spec,
        run_time_limit_s=None if limit_s == told.run_time_limit_s else limit_s,
        priority_class="" if name == told.priority_class else name,
        labels={key: each for key, each in spec.labels.items() if told.labels.get(key) != each},
    )


def problems(
    chain: Sequence[Said],
    *,
    said: Sequence[WorkloadSpec],
    specs: Sequence[WorkloadSpec],
    flavors: Mapping[str, FlavorView],
) -> list[Problem]:
    """What the policies refuse; `specs` are as `said`, with the defaults. Names of flavors have
    been checked. Pointers begin with the spec's index."""
    return [
        _problem(found, root=f"/{index}")
        for index, (own, spec) in enumerate(zip(said, specs, strict=True))
        for found in refusals(chain, own, spec, flavors)
    ]


def refusals(
    chain: Sequence[Said],
    said: WorkloadSpec,
    spec: WorkloadSpec,
    flavors: Mapping[str, FlavorView],
) -> list[Refusal]:
    """What the chain has against one; `spec` is as `said`, with the defaults."""
    return policy.refusals(chain, _asked(said, spec, flavors))


def _problem(found: Refusal, *, root: str = "") -> Problem:
    code = f"policy-{found.rule.replace('_', '-')}"
    return Problem(pointer=f"{root}{found.pointer}", code=code, message=found.message)


def priority_problem(project: Project, priority_class: str) -> Problem | None:
    """Why nobody may give work that waits that priority; None where they may. One query."""
    given = {"priority_class": "/priority_class"}
    asked = replace(_NOTHING, priority_class=priority_class, given=given)
    for found in policy.refusals(selectors.of_project(project), asked):
        if found.pointer == "/priority_class":
            return _problem(found)
    return None


def image_problem(chain: Sequence[Said], images: Sequence[str]) -> str:
    """Why a pod may not run one of them, "" where it may run all."""
    asked = replace(_NOTHING, images=[("", image) for image in images])
    found = policy.refusals(chain, asked)
    return next((each.message for each in found if each.rule == "images"), "")


def labels_wanted(chain: Sequence[Said]) -> frozenset[str]:
    """Keys of labels that work has to have."""
    return frozenset(key for each in chain for key in each.rules.required_labels)


_NOTHING = Asked(None, "", {}, 0, 0, (), {})


def _asked(said: WorkloadSpec, spec: WorkloadSpec, flavors: Mapping[str, FlavorView]) -> Asked:
    pod_sets = list(enumerate(spec.pod_sets))
    return Asked(
        run_time_limit_s=spec.run_time_limit_s,
        priority_class=spec.priority_class,
        labels=spec.labels,
        gpus_milli=sum(_gpus_milli(pod_set, flavors) for pod_set in spec.pod_sets),
        pods=sum(pod_set.count for pod_set in spec.pod_sets),
        images=[
            (f"/pod_sets/{position}/image", image)
            for position, pod_set in pod_sets
            for image in (pod_set.image, *pod_set.images_beside)
        ],
        given=_given(said),
    )


def _gpus_milli(pod_set: PodSetSpec, flavors: Mapping[str, FlavorView]) -> int:
    """Of all its pods, in thousandths of a GPU, rounded up: on the flavor that it accepts of which
    that is most."""
    each = (
        -(-(pod_milli(pod_set, flavor) or 0) * _counts(flavor) // DEVICE_MILLI)
        for flavor in map(flavors.__getitem__, pod_set.accepted)
    )
    return pod_set.count * max(each, default=0)


def _counts(flavor: FlavorView) -> int:
    return counts_milli(kind=flavor.kind, model=flavor.model, profile=flavor.profile)


def _given(spec: WorkloadSpec) -> dict[str, str]:
    """What was said that policies may forbid → where, the first time."""
    found: dict[str, str] = {}
    ours = _BERTHS_OWN if spec.is_caught else frozenset()
    places: list[tuple[str, WorkloadSpec | PodSetSpec]] = [("", spec)]
    places += [(f"/pod_sets/{nth}", each) for nth, each in enumerate(spec.pod_sets)]
    for root, part in places:
        for name, value in _UNSAID.items():
            unsaid = name in ours or getattr(part, name, value) == value
            if not unsaid:
                found.setdefault(name, f"{root}/{name}")
    for nth, each in enumerate(spec.pod_sets):
        if each.min_count < each.count:  # by default all of them
            found.setdefault("min_count", f"/pod_sets/{nth}/min_count")
    return found
