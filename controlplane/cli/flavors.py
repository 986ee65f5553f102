"""Which flavors a manifest's GPUs may come from. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from controlplane.cli.manifest import Manifest

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
