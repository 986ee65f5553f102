"""A plain Kubernetes Job or Pod manifest as the body of a submission, or line by line why not. Pure.

Only what is listed here is taken; everything else is named with its line. Nothing is dropped in
silence: a manifest that converts means the same under Berth.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from controlplane.cli.quantities import BadQuantity, cpu_milli, memory_mib, whole

type Json = dict[str, Any]  # Any: JSON values

MAX_BYTES = 64 * 1024
_GPU = "nvidia.com/gpu"
_MIG = re.compile(r"nvidia\.com/mig-([0-9]+g\.[0-9]+gb)(\.me|\.all|\.gfx)?")
_SHARED = "nvidia.com/gpu.shared"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`line` counts from 1; `field` is the path in the manifest."""

    line: int
    field: str
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: {self.why}"


class Refused(Exception):
    """The manifest can't be taken; every reason, by line."""

    def __init__(self, refusals: list[Refusal]) -> None:
        super().__init__("\n".join(map(str, refusals)))
        self.refusals = refusals


@dataclass(frozen=True, slots=True)
class Found:
    """What the manifest asks for in GPUs: `profile` is "" for whole GPUs, None for CPU work."""

    profile: str | None
    count: int


def convert(
    text: str | bytes, *, project: str, flavors: tuple[str, ...], flavor_for: Callable[[Found], tuple[str, ...]]
) -> Json:
    raise NotImplementedError
