"""How much the running pods use their devices, as DCGM exporter tells it: text for a Prometheus to
scrape, and what one that has scraped it just now answers. Programs that only sleep use none.
"""

from collections.abc import Iterator

import orjson

from clusters.simulator import moments
from clusters.simulator.answers import Json
from clusters.simulator.programs import program
from clusters.simulator.store import Store

GAUGE = "DCGM_FI_DEV_GPU_UTIL"
BUSY_PERCENT = 90
_SHARED = "nvidia.com/gpu.shared"
_DEVICES = ("nvidia.com/gpu", "nvidia.com/mig-", _SHARED)


def text(store: Store) -> bytes:
    """In the text format of Prometheus."""
    lines = [f"# HELP {GAUGE} GPU utilization (in %).", f"# TYPE {GAUGE} gauge"]
    for labels, percent in _series(store):
        told = ",".join(f'{name}="{value}"' for name, value in labels.items())
        lines.append(f"{GAUGE}{{{told}}} {percent}")
    return "\n".join([*lines, ""]).encode()


def answer(store: Store, query: str) -> bytes:
    """To an instant query: all of the gauge, if that is what it asks of, else nothing."""
    at = moments.now().timestamp()
    result = [
        {"metric": labels, "value": [at, str(percent)]}
        for labels, percent in _series(store)
        if GAUGE in query
    ]
    return orjson.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def _series(store: Store) -> Iterator[tuple[dict[str, str], int]]:
    """One for each device or slice of each running pod; a pod's shares are of one device."""
    for pod in store.bodies("pods"):
        if pod["status"]["phase"] != "Running":
            continue
        metadata = pod["metadata"]
        for nth in range(_devices(pod)):
            labels = {
                "namespace": metadata["namespace"],
                "pod": metadata["name"],
                "UUID": f"GPU-{metadata['uid']}-{nth}",
            }
            yield labels, BUSY_PERCENT if program(pod).busy else 0


def _devices(pod: Json) -> int:
    limits = pod["spec"]["containers"][0].get("resources", {}).get("limits") or {}
    asked = {name: int(n) for name, n in limits.items() if name.startswith(_DEVICES)}
    shared = bool(asked.pop(_SHARED, 0))
    return sum(asked.values()) + shared
