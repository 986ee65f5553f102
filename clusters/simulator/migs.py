"""Nodes whose MIG slices are made on demand: each device gives what is left of its slices.

The node advertises the most of each profile that it could ever hold, and this refuses what no
longer fits together. Start positions are not modelled: seven compute and eight memory slices are.
"""

import re
from typing import Self

from clusters.simulator.answers import Json

_PROFILE = re.compile(r"nvidia\.com/mig-([0-9]+)g\.([0-9]+)gb.*")
COMPUTE, MEMORY = 7, 8


class Cuts:
    """What is left of each device of one node; a node without dynamic MIG has none."""

    def __init__(self, devices: int, memory_gb: float) -> None:
        self._left = [[COMPUTE, MEMORY] for _ in range(devices)]
        self._memory_gb = memory_gb
        self._taken: dict[str, list[tuple[int, int, int]]] = {}

    @classmethod
    def of(cls, node: Json) -> Self:
        labels = node["metadata"].get("labels") or {}
        dynamic = any(
            key.endswith("/mig-geometry") and value == "dynamic" for key, value in labels.items()
        )
        devices = int(labels.get("nvidia.com/gpu.count", "0")) if dynamic else 0
        return cls(devices, int(labels.get("nvidia.com/gpu.memory", "0")) / 1024)

    def refusal(self, request: dict[str, int]) -> str | None:
        """Why the slices asked for do not fit, None when they do or nothing is made on demand."""
        if not self._left or self._packed(request) is not None:
            return None
        name = next(resource for resource in request if _PROFILE.fullmatch(resource))
        return f"Insufficient {name}"

    def take(self, key: str, request: dict[str, int]) -> None:
        if not self._left:
            return
        packed = self._packed(request) or []
        for device, compute, memory in packed:
            self._left[device][0] -= compute
            self._left[device][1] -= memory
        if packed:
            self._taken[key] = packed

    def give(self, key: str) -> None:
        for device, compute, memory in self._taken.pop(key, ()):
            self._left[device][0] += compute
            self._left[device][1] += memory

    def _packed(self, request: dict[str, int]) -> list[tuple[int, int, int]] | None:
        """(device, compute, memory) for each slice, first fit; None when one finds no place."""
        left = [list(pair) for pair in self._left]
        packed: list[tuple[int, int, int]] = []
        for compute, memory in self._slices(request):
            for device, pair in enumerate(left):
                if pair[0] >= compute and pair[1] >= memory:
                    pair[0] -= compute
                    pair[1] -= memory
                    packed.append((device, compute, memory))
                    break
            else:
                return None
        return packed

    def _slices(self, request: dict[str, int]) -> list[tuple[int, int]]:
        slices: list[tuple[int, int]] = []
        for resource, count in request.items():
            if match := _PROFILE.fullmatch(resource):
                memory = max(1, round(MEMORY * int(match[2]) / self._memory_gb))
                slices += [(int(match[1]), memory)] * count
        return sorted(slices, reverse=True)
