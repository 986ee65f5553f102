"""Which flavors a manifest's GPUs may come from, by name and by what they have. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from controlplane.cli.manifest import Manifest
from controlplane.cli.quantities import quantity
from scheduler.core.snapshot import Isolation

ISOLATIONS = tuple(each.value for each in Isolation if each is not Isolation.NONE)
"""What may be asked to keep neighbours apart; nothing is asked by saying nothing."""

type Row = Mapping[str, Any]  # Any: a flavor as the API gives it


def choose(
    read: Manifest,
    known: Sequence[Row],
    wanted: Sequence[str],
    *,
    preferred: Sequence[str] = (),
    by_memory: bool = False,
) -> list[str]:
    """The names of `wanted`, else of those flavors that the manifest's resource means: such as the
    project has in `preferred`, in its order, or all where that has none of them. Shares are meant
    where it asks for memory of a GPU `by_memory`, for which slices and whole GPUs may be wanted.
    Of another maker than the resource's is none.

    Raises click.UsageError when a wanted one is unknown or means something else, or none is left.
    """
    kind = ("mig" if read.profile else "whole") if read.gpus else "cpu"
    kinds, asked = {kind}, f"whole GPUs of {read.maker}" if read.gpus else "CPU work"
    if read.profile:
        asked = f"MIG {read.profile}"
    elif by_memory:
        kinds, asked = (
            {"share", "mig", "whole"} if wanted else {"share"},
            f"memory of a GPU of {read.maker}",
        )
    fitting = sorted(
        row["name"]
        for row in known
        if row["kind"] in kinds
        and (by_memory or row["profile"] == read.profile)
        and row.get("vendor", "") in {read.maker, ""}  # an older server does not tell
    )
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
    return list(wanted) or [name for name in preferred if name in fitting] or fitting


class Memory(click.ParamType[int]):
    """A device's memory, as 80GB or 40Gi, in MiB: what has no less than that, or `rounds_up` to
    what is no less."""

    name = "size"

    def __init__(self, *, rounds_up: bool = False) -> None:
        self._more = 2**20 - 1 if rounds_up else 0

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        amount = quantity(str(value).removesuffix("B"))
        if amount is None or amount < 0:
            self.fail(f"{value!r} is no size, as 80GB or 40Gi.", param, ctx)
        return (int(amount) + self._more) // 2**20


def gpu_memory_mib(read: Manifest, asked_mib: int | None) -> int | None:
    """What of one GPU's memory a pod asks for, by the option or by the manifest. Raises
    click.UsageError where the manifest asks for anything but one GPU."""
    if asked_mib is None:
        asked_mib = read.body["pod_sets"][0].get("gpu_memory_mib")
    if asked_mib is not None and (read.profile or read.gpus != 1):
        asked = f"MIG {read.profile}" if read.profile else f"{read.gpus} GPUs"
        raise click.UsageError(
            f"The manifest asks for {asked}: memory of a GPU goes with one, as nvidia.com/gpu: 1."
        )
    return asked_mib


def wish(
    read: Manifest, least_memory_mib: int | None, vendors: Sequence[str]
) -> dict[str, object] | None:
    """What is asked for by what it has; None when nothing is. Raises click.UsageError where the
    manifest asks for no whole GPUs, or for those of another maker."""
    if least_memory_mib is None and not vendors:
        return None
    if read.profile or not read.gpus:
        asked = f"MIG {read.profile}" if read.profile else "no GPUs"
        raise click.UsageError(
            f"The manifest asks for {asked}: --least-gpu-memory and --vendor are for whole GPUs."
        )
    for vendor in vendors:
        if vendor != read.maker:
            raise click.UsageError(
                f"The manifest asks for GPUs of {read.maker}: --vendor {vendor} makes none."
            )
    return {"least_memory_mib": least_memory_mib or 0, "vendors": [read.maker]}
