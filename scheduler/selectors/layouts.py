"""How the MIG devices of each pool had better be cut, as `core.node.advice` says."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low
from typing import NamedTuple

from clusters import stock
from scheduler.core.node import mig
from scheduler.core.node.advice import Advice, Arrival, advise
from scheduler.selectors.fleet import rows
from scheduler.selectors.history import UNKNOWN_RUN_S

LOOKS_BACK = timedelta(days=30)
MOST_ARRIVALS = 3000
"""Slices of a model that layouts are played against, the last ones asked for."""


class Pool(NamedTuple):
    """A stock in a cluster, by their names."""

    cluster: str
    model: str


@dataclass(frozen=True, slots=True)
class Advised:
    cluster: str
    advice: Advice


@dataclass(frozen=True, slots=True)
class _Asked:
    """A slice. It ran in `ran_in`, or waits for one of `accepts`; nowhere, for any cluster."""

    model: str
    profile: str
    at: int
    run_s: int | None
    ran_in: str | None
    accepts: tuple[str, ...]


# Each slice that a pod set's preferred flavor is, for as long as the work ran, and where it did.
_ASKED = f"""
SELECT {stock.sql("f")}, f.profile, extract(epoch FROM w.submitted_at)::bigint,
       extract(epoch FROM w.ended_at - w.started_at)::bigint,
       (SELECT c.name FROM scheduler_attempt a JOIN clusters_cluster c ON c.id = a.cluster_id
        WHERE a.workload_id = w.id ORDER BY a.number DESC LIMIT 1),
       array(SELECT c.name FROM scheduler_workload_clusters x
             JOIN clusters_cluster c ON c.id = x.cluster_id WHERE x.workload_id = w.id),
       s.count * s.gpu_count
FROM scheduler_workload w JOIN scheduler_podset s ON s.workload_id = w.id
JOIN scheduler_podsetflavor p ON p.pod_set_id = s.id AND p.position = 0
JOIN clusters_flavor f ON f.id = p.flavor_id AND f.kind = 'mig'
WHERE w.submitted_at > %s AND w.submitted_at <= %s ORDER BY w.submitted_at DESC, w.id
"""  # noqa: S608  # constants
# In MIG mode, and those of them that are cut once and for all.
_DEVICES = f"""
SELECT c.name, {stock.sql("d")}, count(*), count(*) FILTER (WHERE d.mode = 'mig-static')
FROM clusters_device d
JOIN clusters_node n ON n.id = d.node_id JOIN clusters_cluster c ON c.id = n.cluster_id
WHERE d.mode <> 'whole' AND d.usable AND d.gone_at IS NULL AND n.gone_at IS NULL GROUP BY 1, 2
"""  # noqa: S608  # constants
_SLICES = f"""
SELECT c.name, {stock.sql("d")}, s.profile, count(*) FROM clusters_deviceslice s
JOIN clusters_device d ON d.id = s.device_id JOIN clusters_node n ON n.id = d.node_id
JOIN clusters_cluster c ON c.id = n.cluster_id
WHERE s.gone_at IS NULL AND d.mode = 'mig-static' AND d.usable AND d.gone_at IS NULL
  AND n.gone_at IS NULL GROUP BY 1, 2, 3
"""  # noqa: S608  # constants


def advice(*, at: datetime, cluster: str | None = None) -> tuple[Advised, ...]:
    """Of each pool, or those of one cluster, that has devices that are cut once and for all, and
    was asked for slices in the LOOKS_BACK before `at`. Takes seconds for hundreds of devices;
    three queries."""
    devices = {Pool(name, model): counts for name, model, *counts in rows(_DEVICES)}
    cut = {pool: count for pool, (_, count) in devices.items() if count}
    now: dict[Pool, Counter[str]] = {}
    for name, model, profile, count in rows(_SLICES):
        now.setdefault(Pool(name, model), Counter())[_named(profile)] += count
    asked = _dealt(_asked(at), {pool: count for pool, (count, _) in devices.items()})
    found = (
        (
            pool.cluster,
            advise(
                model=pool.model,
                devices=cut[pool],
                arrivals=_arrivals(asked[pool]),
                now=now.get(pool, {}),
                until=int(at.timestamp()),
            ),
        )
        for pool in sorted(cut.keys() & asked, key=lambda pool: (pool.model, pool.cluster))
        if cluster in (None, pool.cluster)
    )
    return tuple(Advised(name, one) for name, one in found if one is not None)


def _asked(at: datetime) -> list[_Asked]:
    """The last asked for first."""
    found: list[_Asked] = []
    known = Counter[str]()
    for model, profile, asked_at, run_s, ran_in, accepts, count in rows(
        _ASKED, [at - LOOKS_BACK, at]
    ):
        of = min(count, MOST_ARRIVALS - known[model])
        one = _Asked(model, _named(profile), asked_at, run_s, ran_in, tuple(accepts))
        found += [one] * of
        known[model] += of
    return found


def _dealt(asked: Iterable[_Asked], devices: Mapping[Pool, int]) -> dict[Pool, list[_Asked]]:
    """What each pool was asked for: what ran there; and of what waits, which may go to any pool
    that it accepts, the next goes to the one with the least for each of its devices."""
    dealt: dict[Pool, list[_Asked]] = {}
    waits: list[_Asked] = []
    for one in asked:
        if one.ran_in is not None and (pool := Pool(one.ran_in, one.model)) in devices:
            dealt.setdefault(pool, []).append(one)
        else:
            waits.append(one)
    for one in waits:
        open_to = [
            pool
            for pool in devices
            if pool.model == one.model and (not one.accepts or pool.cluster in one.accepts)
        ]
        if open_to:
            least = min(open_to, key=lambda p: (len(dealt.get(p, ())) / devices[p], p))
            dealt.setdefault(least, []).append(one)
    return dealt


def _named(profile: str) -> str:
    """As the tables of MIG name it: Kubernetes can't write a plus."""
    return profile.replace(".me", mig.MEDIA)


def _arrivals(asked: Iterable[_Asked]) -> list[Arrival]:
    asked = list(asked)
    ran: dict[str, list[int]] = {}
    for one in asked:
        if one.run_s is not None:
            ran.setdefault(one.profile, []).append(one.run_s)
    usual = {profile: median_low(times) for profile, times in ran.items()}
    return [
        Arrival(
            one.at,
            one.profile,
            usual.get(one.profile, UNKNOWN_RUN_S) if one.run_s is None else one.run_s,
        )
        for one in asked
    ]
