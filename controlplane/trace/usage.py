"""What processes have cost so far, as /proc tells: processor time and peak memory by service."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """`cpu_s` of a service's processes and their dead children; `peak_mib` is the largest
    resident set that one of them has had."""

    cpu_s: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    words: tuple[str, ...]


def processes() -> dict[int, Process]:
    """Those that run now, by process id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(_stat(int(entry.name))[1])
            words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        pid = int(entry.name)
        found[pid] = Process(pid, parent, tuple(os.fsdecode(word) for word in words))
    return found


def families(root: int, services: Mapping[str, tuple[str, ...]]) -> dict[str, list[int]]:
    """Process ids by service, its main process first: the children of `root` by their command
    lines, and all below. PostgreSQL and Valkey are known by their programs."""
    running = processes()
    children: dict[int, list[int]] = {}
    for process in running.values():
        children.setdefault(process.parent, []).append(process.pid)
    names = {words: name for name, words in services.items()}
    found = {}
    for pid in children.get(root, []):
        words = running[pid].words
        name = names.get(words) or {"postgres": "postgres", "valkey-server": "valkey"}.get(
            Path(words[0].split(" ")[0]).name, ""
        )
        if name:
            found[name] = [pid, *_below(pid, children)]
    return found


def measure(found: Mapping[str, list[int]]) -> dict[str, Usage]:
    """What each family has cost."""
    return {
        name: Usage(sum(map(_cpu_s, pids)), max(map(_peak_mib, pids), default=0.0))
        for name, pids in found.items()
    }


def _below(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    return [each for child in children.get(pid, []) for each in (child, *_below(child, children))]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu_s(pid: int) -> float:
    try:
        # utime, stime, and the same of children that have ended.
        return sum(int(field) for field in _stat(pid)[11:15]) / _TICKS
    except OSError:
        return 0.0


def _peak_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    peak = next((line.split()[1] for line in lines if line.startswith("VmHWM")), "0")
    return int(peak) / 1024
