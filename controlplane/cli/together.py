"""What has to be together, or had better be, as the command line has it."""

import re
from typing import Any, NamedTuple

import click

type Json = Any  # JSON values

_GROUPS = re.compile(r"([0-9]{1,9}):(.+)")


class Groups(NamedTuple):
    size: int
    level: str


class GroupsOf(click.ParamType[Groups]):
    """N:LEVEL, each N pods in one domain of the level."""

    name = "N:LEVEL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Groups:  # Any: as click has it
        found = _GROUPS.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not N:LEVEL, as 4:nvlink for each 4 pods in one nvlink.")
        return Groups(int(found[1]), found[2])


def put(
    body: Json,
    *,
    within: str | None,
    near: str | None,
    groups_within: Groups | None,
    groups_near: Groups | None,
) -> dict[str, str]:
    """Into the body, of the workload and of its pod set; of which options they come, by JSON
    pointer. Raises UsageError where two exclude each other."""
    if within and near:
        raise click.UsageError("--within and --near exclude each other: name one level.")
    if groups_within and groups_near:
        raise click.UsageError("--groups-within and --groups-near exclude each other.")
    if within or near:
        body["topology"] = {"level": within or near, "mode": _mode(within)}
    if groups := groups_within or groups_near:
        asked = {"level": groups.level, "mode": _mode(groups_within), "group_size": groups.size}
        body["pod_sets"][0]["topology"] = asked
    return {
        "/topology": "--within" if within else "--near",
        "/pod_sets/0/topology": "--groups-within" if groups_within else "--groups-near",
    }


def _mode(required: object) -> str:
    return "required" if required else "preferred"
