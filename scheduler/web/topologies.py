"""In one domain of which level pods have to be, or had better be: read, described, shown again."""

import re
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from controlplane.api.fields import Integer, StrictSerializer
from scheduler.core.snapshot import SetTopologyView, TopologyView
from scheduler.models import PodSet, Workload
from scheduler.services import specs
from scheduler.web.reading import Faults, Json

LEVEL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
TOPOLOGY_FIELDS = frozenset({"level", "mode"})
SET_TOPOLOGY_FIELDS = TOPOLOGY_FIELDS | {"group_size"}
TOPOLOGY_MODES = ["required", "preferred"]


class TopologyIn(StrictSerializer):
    """All its pods in one zone, rack or NVLink domain. Description only: `topology` reads it."""

    level = serializers.RegexField(
        rf"^{LEVEL_NAME.pattern}$",
        max_length=40,
        help_text="A level of this installation, such as rack; an unknown one is refused with"
        " those there are.",
    )
    mode = serializers.ChoiceField(
        choices=TOPOLOGY_MODES,
        required=False,
        default="required",
        help_text="required: it starts in one domain of the level or not at all. preferred: it"
        " starts in the smallest domain that holds it, from that level outwards, else anywhere.",
    )


class SetTopologyIn(TopologyIn):
    """The same for the pods of one pod set, within what its workload asks for all of them: the
    level is inside that one. Description only: `of_set` reads it."""

    group_size = Integer(
        low=1,
        high=specs.MAX_PODS,
        required=False,
        allow_null=True,
        help_text="Each so many pods, by rank, in a domain of their own; it divides count, and"
        " all pods start together. Left out or null: all of them in one.",
    )


class TopologyOut(serializers.Serializer[Any]):  # Any: plain rows
    """In one domain of which level its pods have to be, or had better be."""

    level = serializers.CharField()
    mode = serializers.ChoiceField(choices=TOPOLOGY_MODES)


class SetTopologyOut(TopologyOut):
    """The same of one pod set."""

    group_size = serializers.IntegerField(
        allow_null=True, help_text="Each so many pods, by rank; null: all of them."
    )


def topology(data: Mapping[str, Json], root: str, faults: Faults) -> TopologyView | None:
    """Of a workload below `root`, None for anywhere."""
    value = faults.member(data, "topology", root, TOPOLOGY_FIELDS, "level and mode")
    return None if value is None else TopologyView(*_level(value, f"{root}/topology", faults))


def of_set(
    data: Mapping[str, Json],
    root: str,
    faults: Faults,
    *,
    name: str,
    count: int,
    min_count: int,
) -> SetTopologyView | None:
    """Of a pod set below `root`, None for anywhere."""
    wanted, pointer = "level, mode and group_size", f"{root}/topology"
    value = faults.member(data, "topology", root, SET_TOPOLOGY_FIELDS, wanted)
    if value is None:
        return None
    level, required = _level(value, pointer, faults)
    size = None
    if value.get("group_size") is not None:
        size = faults.integer(value, "group_size", pointer, 1, specs.MAX_PODS, None)
    if size is None or not (count and min_count):  # 0 for one that was refused already
        return SetTopologyView(level, required, name, size)
    if count % size:
        message = f"Groups of {size} do not divide {count} pods: a whole number of them is wanted."
        faults.add(f"{pointer}/group_size", "invalid", message)
    elif min_count != count:
        message = (
            f"In groups all pods start together: min_count is {min_count} of {count}; leave out"
            " one of the two."
        )
        faults.add(f"{pointer}/group_size", "invalid", message)
    return SetTopologyView(level, required, name, size)


def _level(value: Mapping[str, Json], pointer: str, faults: Faults) -> tuple[str, bool]:
    level = faults.string(value, "level", pointer, LEVEL_NAME, "the name of a level")
    mode = value.get("mode", "required")
    if mode not in TOPOLOGY_MODES:
        known = " or ".join(TOPOLOGY_MODES)
        faults.add(f"{pointer}/mode", "invalid", f"One of {known} is wanted.")
    return level, mode == "required"


def shown(row: Workload | PodSet) -> dict[str, Json] | None:
    """As TopologyOut."""
    if not row.topology_level:
        return None
    mode = "required" if row.topology_required else "preferred"
    return {"level": row.topology_level, "mode": mode}


def shown_of_set(row: PodSet) -> dict[str, Json] | None:
    """As SetTopologyOut."""
    found = shown(row)
    return None if found is None else {**found, "group_size": row.topology_group_size}
