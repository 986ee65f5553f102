"""Which flavors a manifest's GPUs may come from, by name and by what they have. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from controlplane.cli.manifest import Manifest
from controlplane.cli.quantities import quantity

type Row = Mapping[str, Any]  # Any: a flavor as the API gives it


def choose(read: Manifest, known: Sequence[Row], wanted: Sequence[str]) -> list[str]:
    """The names of `wanted`, or of every known flavor that the manifest's resource means.

    Raises click.UsageError when a wanted one is unknown or means something else, or none is left.
    """
    kind = ("mig" if read.profile else "whole") if read.gpus else "cpu"
    fitting = sorted(
        row["name"] for row in known if row["kind"] == kind and row["profile"] == read.profile
    )
    asked = f"MIG {read.profile}" if read.profile else "whole GPUs" if read.gpus else "CPU work"
    if not fitting:
        raise click.UsageError(
            f"The manifest asks for {asked}; this installation has no such flavor."
        )
    for name in wanted:
        if name not in fitting:
            raise click.UsageError(
                f"The manifest asks for {asked}, which --flavor {name} is not; "
                f"fitting: {', '.join(fitting)}."
            )
    return list(wanted) or fitting


class Memory(click.ParamType[int]):
    """A device's memory, as 80GB or 40Gi, in MiB."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        amount = quantity(str(value).removesuffix("B"))
        if amount is None or amount < 0:
            self.fail(f"{value!r} is no size, as 80GB or 40Gi.", param, ctx)
        return int(amount) // 2**20


def wish(
    read: Manifest, least_memory_mib: int | None, vendors: Sequence[str]
) -> dict[str, object] | None:
    """What is asked for by what it has; None when nothing is. Raises click.UsageError where the
    manifest asks for no whole GPUs."""
    if least_memory_mib is None and not vendors:
        return None
    if read.profile or not read.gpus:
        asked = f"MIG {read.profile}" if read.profile else "no GPUs"
        raise click.UsageError(
            f"The manifest asks for {asked}: --least-gpu-memory and --vendor are for whole GPUs."
        )
    return {"least_memory_mib": least_memory_mib or 0, "vendors": list(vendors)}
