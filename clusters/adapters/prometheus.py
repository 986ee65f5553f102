"""How much pods use their devices, from an API that answers as Prometheus does
(https://prometheus.io/docs/prometheus/latest/querying/api/, instant queries)."""

import math
from typing import Any

from clusters.adapters.kubernetes.client import Client
from clusters.port import ClusterError, Fault
from clusters.use import PodUse

# DCGM exporter's, 0 to 100, one series a device. The most in two minutes: what uses its devices in
# bursts uses them. A device that has gone silent is in it for as long.
QUERY = (
    'max by (namespace, pod, UUID, GPU_I_ID) (max_over_time(DCGM_FI_DEV_GPU_UTIL{pod!=""}[2m]))'
)
MOST_SERIES = 200_000


class Prometheus:
    """One such API, asked one query."""

    def __init__(self, client: Client, *, query: str = QUERY) -> None:
        self._client = client
        self._query = query

    def use(self) -> tuple[PodUse, ...]:
        """As `UsePort`. A series without a pod is of no pod, and one without a number is none."""
        answer = self._client.call("GET", "/api/v1/query", query={"query": self._query})
        found: dict[tuple[str, str], list[float]] = {}
        for series in _vector(answer):
            labels, percent = _read(series)
            namespace, pod = labels.get("namespace"), labels.get("pod")
            if isinstance(namespace, str) and isinstance(pod, str) and math.isfinite(percent):
                found.setdefault((namespace, pod), []).append(percent)
        return tuple(PodUse(*pod, tuple(percents)) for pod, percents in found.items())

    def close(self) -> None:
        self._client.close()


def _vector(answer: dict[str, Any]) -> list[object]:  # Any: JSON values
    told = answer.get("data")
    if answer.get("status") != "success" or not isinstance(told, dict):
        raise _malformed("has no result")
    if told.get("resultType") != "vector" or not isinstance(told.get("result"), list):
        raise _malformed(f"is a {str(told.get('resultType'))[:20]}; right would be a vector")
    result: list[object] = told["result"]
    if len(result) > MOST_SERIES:
        raise _malformed(f"has {len(result)} series; at most {MOST_SERIES} are read")
    return result


def _read(series: object) -> tuple[dict[str, object], float]:
    try:
        labels, (_, value) = series["metric"], series["value"]  # type: ignore[index]  # a stranger's
        return dict(labels), float(value)
    except (TypeError, ValueError, KeyError):
        raise _malformed("has a series without labels or a value") from None


def _malformed(how: str) -> ClusterError:
    return ClusterError(Fault.MALFORMED, f"The answer to the query for use {how}.")
