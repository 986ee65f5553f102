"""Pure: GPUs that HAMi gives away in parts. Raises Malformed for what makes no sense.

HAMi advertises each GPU several times as nvidia.com/gpu, and its scheduler gives pods amounts of
memory (nvidia.com/gpumem) and of cores on GPUs of its choice. What the GPUs are is told by an
annotation: JSON of newer versions, else uuid,count,MiB,cores,type,numa,healthy, each with a ":".
Berth knows them and places nothing there: it would take each of those parts for a GPU.
"""

from collections.abc import Iterator

import orjson

from clusters.adapters.kubernetes.checks import Json, Malformed, count
from clusters.adapters.kubernetes.models import model_of
from clusters.port import MOST_DEVICES, DeviceReport

REGISTER = "hami.io/node-nvidia-register"
UNUSED = "HAMi gives its GPUs away in parts, so nothing is placed there"


def registered(annotations: Json) -> tuple[DeviceReport, ...] | None:
    """The GPUs of a node, None where HAMi has none."""
    told = annotations.get(REGISTER)
    if not told:
        return None
    if not isinstance(told, str):
        raise Malformed(f"{REGISTER} is no text")
    gpus = tuple(_read(told))
    if not all(kind.isprintable() for kind, _ in gpus):
        raise Malformed(f"{REGISTER} has a GPU whose type is no text")
    found = tuple(
        DeviceReport(
            ordinal=ordinal,
            model=model_of(kind.removeprefix("NVIDIA-").strip().replace(" ", "-"))[:80],
            memory_mib=count(memory, most=2**24),
            usable=False,
        )
        for ordinal, (kind, memory) in enumerate(gpus)
    )
    if len(found) > MOST_DEVICES:
        raise Malformed(f"more than {MOST_DEVICES} devices")
    return found


def _read(told: str) -> Iterator[tuple[str, str]]:
    """Type and MiB of each."""
    if not told.startswith("["):
        for each in filter(None, told.split(":")):
            fields = each.split(",")
            if len(fields) < 7:
                raise Malformed(f"{REGISTER} has a GPU of {len(fields)} fields, not 7 or more")
            yield fields[4], fields[2]
        return
    try:
        gpus = orjson.loads(told)
    except orjson.JSONDecodeError:
        raise Malformed(f"{REGISTER} is no JSON") from None
    for gpu in gpus:
        if not isinstance(gpu, dict):
            raise Malformed(f"{REGISTER} has a GPU that is no object")
        yield str(gpu.get("type", "")), str(gpu.get("devmem", ""))
