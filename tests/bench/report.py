"""What every benchmark leaves behind: named figures, the machine, the day."""

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "bench" / "results"


class Goal(NamedTuple):
    """What a figure should be."""

    at_least: float = -math.inf
    at_most: float = math.inf


class Figures:
    """Figures by name, in the order in which they were found."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[float, str]] = {}
        self._goals: dict[str, tuple[float, float]] = {}
        self._idle = idle_part()

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        at_least: float = -math.inf,
        at_most: float = math.inf,
    ) -> None:
        """Names are stable: later runs are compared by them. The bounds are its goal."""
        if name in self._metrics:
            raise ValueError(f"{name} has a value already")
        self._metrics[name] = (round(value, 3), unit)
        self._goals[name] = (at_least, at_most)

    @property
    def missed(self) -> list[str]:
        """The names of those beyond their goals."""
        return [
            name
            for name, (least, most) in self._goals.items()
            if not least <= self._metrics[name][0] <= most
        ]

    def table(self) -> str:
        return self._table(self._metrics)

    def against(self, goals: Mapping[str, Goal]) -> str:
        """A table of those that have such a goal, which are theirs from now on."""
        found = [name for name in goals if name in self._metrics]
        for name in found:
            self._goals[name] = goals[name].at_least, goals[name].at_most
        return self._table(found)

    def _table(self, names: Collection[str]) -> str:
        width = max(map(len, names), default=0)
        lines = []
        for name in names:
            value, unit = self._metrics[name]
            lines.append(f"{name:<{width}}  {value:>12,.2f} {unit}{self._told(name)}")
        note = f"the machine was {self._idle:.0%} idle before"
        return "\n".join([*lines, note])

    def write(self, path: Path) -> None:
        """Figures of an earlier run that this one did not take are kept, with that run's day and
        commit."""
        taken_at, of = datetime.now(UTC).isoformat(timespec="seconds"), commit()
        kept = _kept(path)
        metrics = {
            name: {"value": value, "unit": unit} for name, (value, unit) in self._metrics.items()
        }
        content = {
            "metrics": kept["metrics"] | metrics,
            "taken_at": kept["taken_at"] | dict.fromkeys(metrics, taken_at),
            "taken_of": kept["taken_of"] | dict.fromkeys(metrics, of),
            "date": taken_at,
            "commit": of,
            "machine": {**machine(), "idle_before": round(self._idle, 3)},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")

    def _told(self, name: str) -> str:
        least, most = self._goals[name]
        if math.isinf(least) and math.isinf(most):
            return ""
        bound = f"at most {most:g}" if math.isinf(least) else f"at least {least:g}"
        return f"  ({bound}: {'MISSED' if name in self.missed else 'met'})"


def _kept(path: Path) -> dict[str, dict[str, Any]]:  # Any: JSON
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        kept = {}
    return {part: kept.get(part, {}) for part in ("metrics", "taken_at", "taken_of")}


def machine() -> dict[str, Any]:  # Any: JSON values
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def idle_part(seconds: float = 3.0) -> float:
    """How much of all cores was idle, over some seconds."""
    before = _ticks()
    time.sleep(seconds)
    total, idle = (now - then for now, then in zip(_ticks(), before, strict=True))
    return idle / total if total else 0.0


def percentile(values: list[float], percent: int) -> float:
    """The value at or above which `percent` of them lie below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def plain_environ(drop: frozenset[str] = frozenset()) -> Mapping[str, str]:
    """As on a user's machine: no servers from outside, and Python keeps what it compiled."""
    servers = {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE"}
    unwanted = servers | {"PYTHONDONTWRITEBYTECODE", "BERTH_CLOCK"} | drop
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _ticks() -> tuple[int, int]:
    """(all, idle) of all cores since the machine's start."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(fields[:8]), fields[3] + fields[4]


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str:
    """What is checked out; "-dirty" at its end where files differ from that."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return found.stdout.strip()
