"""Whether the levels of the topology that a submission names are there, and inside one another."""

from collections.abc import Sequence

from controlplane.kernel.errors import Problem
from scheduler.selectors import fleet
from scheduler.services.specs import WorkloadSpec


def problems(root: str, spec: WorkloadSpec) -> list[Problem]:
    """One for each level that there is not, and for each of a pod set that says nothing, since all
    pods have to be in one domain as narrow already. Pointers lie below `root`."""
    levels, found = fleet.levels(), []
    whole = spec.topology
    if whole is not None and whole.level not in levels:
        found.append(_unknown(f"{root}/topology/level", whole.level, levels))
    for position, pod_set in enumerate(spec.pod_sets):
        if pod_set.topology is None:
            continue
        pointer, level = f"{root}/pod_sets/{position}/topology/level", pod_set.topology.level
        if level not in levels:
            found.append(_unknown(pointer, level, levels))
        elif whole is not None and whole.required and whole.level in levels:
            inside = levels[levels.index(whole.level) + 1 :]
            if level not in inside:
                right = f"one of {', '.join(inside)}" if inside else "none"
                message = (
                    f"All pods have to be in one {whole.level} already: a level inside of it is"
                    f" wanted, {right}, not {level}."
                )
                found.append(Problem(pointer=pointer, code="wider-level", message=message))
    return found


def _unknown(pointer: str, level: str, levels: Sequence[str]) -> Problem:
    known = f"known: {', '.join(levels)}" if levels else "there are none here"
    message = f"There is no topology level {level!r}; {known}."
    return Problem(pointer=pointer, code="unknown-level", message=message)
