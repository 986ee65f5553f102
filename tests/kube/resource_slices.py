"""ResourceSlices as NVIDIA's driver for Dynamic Resource Allocation publishes them: whole GPUs,
GPUs that are cut, and, as partitionable devices, GPUs that can be cut."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.core.node import mig

type Json = dict[str, Any]

PATH = "/apis/resource.k8s.io/v1/resourceslices"
DRIVER = "gpu.nvidia.com"
MODEL = "NVIDIA H100 80GB HBM3"
BOARD = "H100-80GB-HBM3"
MEMORY = "80Gi"


def uuid(node: str, nth: int) -> str:
    return f"GPU-{node}-{nth}"


def whole(node: str, nth: int, **more: Any) -> Json:
    return {
        "name": f"gpu-{nth}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": uuid(node, nth)},
            "productName": {"string": MODEL},
            "architecture": {"string": "Hopper"},
        },
        "capacity": {"memory": {"value": MEMORY}},
        **more,
    }


def piece(node: str, nth: int, profile: str, start: int, *, cut: bool = False) -> Json:
    """A slice; one that is `cut` is there and has a uuid of its own."""
    [end] = {s.end for s in mig.legal_spans(model=BOARD, profile=profile) if s.start == start}
    name = f"gpu-{nth}-mig-{profile.replace('.', '').replace('+', '-')}-{start}"
    body: Json = {
        "name": name,
        "attributes": {
            "type": {"string": "mig"},
            "parentUUID": {"string": uuid(node, nth)},
            "profile": {"string": profile},
            "productName": {"string": MODEL},
        },
        "capacity": {"memory": {"value": "10Gi"}}
        | {f"memorySlice{at}": {"value": "1"} for at in range(start, end)},
    }
    if cut:
        body["attributes"]["uuid"] = {"string": f"MIG-{node}-{name}"}
    return body


def partitionable(node: str, nth: int) -> tuple[list[Json], Json]:
    """A GPU and every slice of it that there could be, and what they take of one set of
    counters."""
    board = mig.board(model=BOARD)
    assert board is not None
    name = f"gpu-{nth}-counter-set"
    total = {"multiprocessors": 7} | {f"memory-slice-{at}": 1 for at in range(8)}
    devices = [whole(node, nth, consumesCounters=[_counters(name, total, "counterSet")])]
    for profile in board.profiles:
        for span in mig.legal_spans(model=BOARD, profile=profile.name):
            takes = {"multiprocessors": profile.compute}
            takes |= {f"memory-slice-{at}": 1 for at in range(span.start, span.end)}
            device = piece(node, nth, profile.name, span.start)
            devices.append(device | {"consumesCounters": [_counters(name, takes, "counterSet")]})
    return devices, _counters(name, total, "name")


def published(
    node: str,
    devices: Iterable[Json] = (),
    *,
    counters: Iterable[Json] = (),
    part: int = 0,
    parts: int = 1,
    generation: int = 1,
) -> Json:
    """One part of what the driver publishes of that node."""
    spec: Json = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": parts},
    }
    for key, told in (("devices", list(devices)), ("sharedCounters", list(counters))):
        if told:
            spec[key] = told
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{part}"},
        "spec": spec,
    }


def cuttable(node: str, gpus: int = 1) -> list[Json]:
    """All parts of a pool of partitionable GPUs: their counters, then each GPU."""
    made = [partitionable(node, nth) for nth in range(gpus)]
    parts = 1 + gpus
    first = published(node, counters=[counters for _, counters in made], parts=parts)
    return [first] + [
        published(node, devices, part=nth, parts=parts) for nth, (devices, _) in enumerate(made, 1)
    ]


def _counters(name: str, amounts: Mapping[str, int], key: str) -> Json:
    return {key: name, "counters": {of: {"value": str(n)} for of, n in amounts.items()}}
