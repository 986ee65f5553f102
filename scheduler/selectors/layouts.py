"""How the MIG devices of each model had better be cut: what `core.advice` makes of the rows."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from statistics import median_low

from clusters import stock
from scheduler.core import mig
from scheduler.core.advice import Advice, Arrival, advise
from scheduler.selectors.fleet import rows

LOOKS_BACK = timedelta(days=30)
MOST_ARRIVALS = 3000
"""Slices of a model that a layout is played against, the last ones asked for."""
UNKNOWN_RUN_S = 3600
"""How long a slice is taken to be held where none of its profile has been held yet."""

# Each slice that a pod set's preferred flavor is, for as long as the work ran.
_ASKED = f"""
SELECT {stock.sql("f")}, f.profile, extract(epoch FROM w.submitted_at)::bigint,
       extract(epoch FROM w.ended_at - w.started_at)::bigint, s.count * s.gpu_count
FROM scheduler_workload w JOIN scheduler_podset s ON s.workload_id = w.id
JOIN scheduler_podsetflavor p ON p.pod_set_id = s.id AND p.position = 0
JOIN clusters_flavor f ON f.id = p.flavor_id AND f.kind = 'mig'
WHERE w.submitted_at > %s AND w.submitted_at <= %s ORDER BY w.submitted_at DESC, w.id
"""  # noqa: S608  # constants
_DEVICES = f"""
SELECT {stock.sql("d")}, count(*) FROM clusters_device d JOIN clusters_node n ON n.id = d.node_id
WHERE d.mode <> 'whole' AND d.usable AND d.gone_at IS NULL AND n.gone_at IS NULL GROUP BY 1
"""  # noqa: S608  # constants
_SLICES = f"""
SELECT {stock.sql("d")}, s.profile, count(*) FROM clusters_deviceslice s
JOIN clusters_device d ON d.id = s.device_id JOIN clusters_node n ON n.id = d.node_id
WHERE s.gone_at IS NULL AND d.mode = 'mig-static' AND d.usable AND d.gone_at IS NULL
  AND n.gone_at IS NULL GROUP BY 1, 2
"""  # noqa: S608  # constants


def advice(*, at: datetime) -> tuple[Advice, ...]:
    """Of each model that has devices in MIG mode and was asked for in slices in the LOOKS_BACK
    before `at`, over all clusters. Takes seconds for hundreds of devices; three queries."""
    asked: dict[str, list[tuple[str, int, int | None]]] = {}
    for model, profile, submitted_at, run_s, count in rows(_ASKED, [at - LOOKS_BACK, at]):
        known = asked.setdefault(model, [])
        known += [(_named(profile), submitted_at, run_s)] * min(count, MOST_ARRIVALS - len(known))
    now: dict[str, Counter[str]] = {}
    for model, profile, count in rows(_SLICES):
        now.setdefault(model, Counter())[_named(profile)] += count
    found = (
        advise(
            model=model,
            devices=devices,
            arrivals=_arrivals(asked.get(model, ())),
            now=now.get(model, {}),
            until=int(at.timestamp()),
        )
        for model, devices in sorted(rows(_DEVICES))
    )
    return tuple(one for one in found if one is not None)


def _named(profile: str) -> str:
    """As the tables of MIG name it: Kubernetes can't write a plus."""
    return profile.replace(".me", mig.MEDIA)


def _arrivals(asked: Iterable[tuple[str, int, int | None]]) -> list[Arrival]:
    ran: dict[str, list[int]] = {}
    asked = list(asked)
    for profile, _, run_s in asked:
        if run_s is not None:
            ran.setdefault(profile, []).append(run_s)
    usual = {profile: median_low(times) for profile, times in ran.items()}
    return [
        Arrival(at, profile, usual.get(profile, UNKNOWN_RUN_S) if run_s is None else run_s)
        for profile, at, run_s in asked
    ]
