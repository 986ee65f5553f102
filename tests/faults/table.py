"""The matrix: which fault meets which phase, and why the others do not.

`text` is the table as Markdown, of MATRIX.md and of `make faults`; `run` the line under it in
MATRIX.md, of when all of it was played.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from tests.faults import rows, spoil
from tests.faults.proxy import Spoil
from tests.faults.scene import Kind, Phase, Scene

MATRIX = Path(__file__).parent / "MATRIX.md"
WHY = {
    "a": "no request is made in it",
    "b": "a read conflicts with nothing, is not validated and changes nothing",
    "c": "only lists and watches expire",
    "d": "a watch's lines alone",
    "e": "a list alone",
    "f": "no pod of it is on a node then, or it has ended",
    "g": "no moment is noted in it",
    "h": "nothing of it is in Redis",
    "i": "the task is the same as in create",
    "j": "all phases are in that one cell",
    "k": "only a whole list shows them",
    "l": "only who creates it meets its name",
    "m": "the cluster is not asked in it",
    "n": "what others made is theirs, and ends or starts otherwise then (ADR 0079)",
    "o": "what was collected since, or labelled for work that is lost, nobody knows (ADR 0090)",
}
READS = frozenset({Phase.CATCH, Phase.START, Phase.RELIST})
SILENT = frozenset({Phase.PLAN, Phase.STORE})


@dataclass(frozen=True)
class Fault:
    """A row. `why` has, for phases that it does not meet, the key of the reason."""

    name: str
    put: Callable[[Scene], AbstractContextManager[None]]
    why: Mapping[Phase, str]


def _answered(name: str, by: Spoil, why: Mapping[Phase, str] | None = None) -> Fault:
    return Fault(name, partial(rows.spoiled, by=by), {**dict.fromkeys(SILENT, "a"), **(why or {})})


def _only(phases: Collection[Phase], key: str) -> Mapping[Phase, str]:
    return {phase: key for phase in Phase if phase not in phases}


def _beside(
    name: str,
    put: Callable[[Scene], AbstractContextManager[None]],
    *phases: Phase,
    otherwise: str,
) -> Fault:
    return Fault(name, put, _only(phases, otherwise))


_NO_READ = dict.fromkeys(READS, "b")
P = Phase
FAULTS = (
    _answered("401", spoil.answer(401)),
    _answered("403", spoil.answer(403), {P.CATCH: "n"}),
    _answered("409", spoil.answer(409), _NO_READ),
    _answered("410", spoil.answer(410), _only({P.START, P.RELIST, *SILENT}, "c")),
    _answered("422", spoil.answer(422), {**_NO_READ, P.LABEL: "n"}),
    _answered("429, Retry-After", spoil.answer(429, Retry_After="1")),
    _answered("500", spoil.answer(500)),
    _answered("503", spoil.answer(503)),
    _answered("no answer, not done", spoil.silence_before),
    _answered("no answer, done", spoil.silence_after, _NO_READ),
    _answered("watch cut in a line", spoil.cut, _only({P.START}, "d")),
    _answered("watch half-open", spoil.half_open, _only({P.START}, "d")),
    _answered("watch expired", spoil.expired, _only({P.START}, "d")),
    _beside("stale list", rows.stale_list, P.RELIST, otherwise="e"),
    _beside("node deleted", rows.node_deleted, P.CREATE, P.OPEN, P.START, P.DELETE, otherwise="f"),
    _beside("node silent", rows.node_silent, P.CREATE, P.OPEN, P.START, P.DELETE, otherwise="f"),
    _beside(
        "devices gone (Xid)",
        rows.devices_gone,
        *(P.CREATE, P.OPEN, P.START, P.DELETE),
        otherwise="f",
    ),
    *(
        _beside(
            f"clock {sign}1 h",
            partial(rows.clock_off, by=timedelta(hours=hours)),
            *(P.PLAN, P.CREATE, P.OPEN, P.START, P.DELETE, P.COLLECT),
            otherwise="g",
        )
        for sign, hours in (("+", 1), ("-", -1))
    ),
    *(
        _beside(name, put, P.PLAN, P.CREATE, P.OPEN, P.DELETE, P.COLLECT, otherwise="h")
        for name, put in (("Redis flushed", rows.redis_flushed), ("Redis down", rows.redis_down))
    ),
    _beside("database connections lost", rows.database_lost, *Phase, otherwise=""),
    _beside(
        "database refuses connections",
        partial(
            rows.database_altered, to="ALLOW_CONNECTIONS false", back="ALLOW_CONNECTIONS true"
        ),
        *Phase,
        otherwise="",
    ),
    _beside(
        "database takes no writes",
        partial(
            rows.database_altered,
            to="SET default_transaction_read_only TO on",
            back="RESET default_transaction_read_only",
        ),
        *Phase,
        otherwise="",
    ),
    _beside(
        "tasks delivered 10 times",
        rows.delivered_ten_times,
        *(P.PLAN, P.CREATE, P.DELETE, P.COLLECT),
        otherwise="i",
    ),
    *(
        _beside(
            f"{count} schedulers", partial(rows.schedulers, count=count), P.PLAN, otherwise="j"
        )
        for count in (2, 4)
    ),
    _beside("gated orphan", rows.gated_orphan, P.RELIST, otherwise="k"),
    _beside("running orphan", rows.running_orphan, P.RELIST, otherwise="k"),
    _beside("namesake", rows.namesake, P.CREATE, otherwise="l"),
    _beside(
        "cluster gone for 6 h",
        rows.cluster_gone,
        *(P.CREATE, P.STORE, P.OPEN, P.START, P.RELIST, P.DELETE, P.COLLECT),
        otherwise="m",
    ),
    _beside(
        "database restored",
        rows.database_restored,
        *(P.CATCH, P.PLAN, P.CONFINE, P.CREATE, P.STORE, P.OPEN, P.START, P.RELIST, P.DELETE),
        otherwise="o",
    ),
)


@dataclass(frozen=True)
class Cell:
    fault: Fault
    phase: Phase
    struck: Kind

    def __str__(self) -> str:
        return f"{self.fault.name} in {self.phase}"


def cells() -> Iterator[Cell]:
    """Which of the three is struck goes round, so that no phase meets one alone."""
    for row, fault in enumerate(FAULTS):
        for column, phase in enumerate(Phase):
            if phase not in fault.why:
                yield Cell(fault, phase, list(Kind)[(row + column) % len(Kind)])


def text(*, failed: Collection[str] = ()) -> str:
    """Those that failed are named as `str` of their cells."""
    lines = [
        _HEAD.format(count=len(list(cells()))),
        f"| | {' | '.join(Phase)} |\n",
        f"|-|{'-|' * len(Phase)}\n",
    ]
    met = {(cell.fault.name, cell.phase): cell for cell in cells()}
    for fault in FAULTS:
        row = []
        for phase in Phase:
            cell = met.get((fault.name, phase))
            outcome = "FAIL" if str(cell) in failed else "ok"
            row.append(f"{outcome} {cell.struck}" if cell else f"– {fault.why[phase]}")
        lines.append(f"| {fault.name} | {' | '.join(row)} |\n")
    lines += ["\nNot met (–), because:\n\n", *(f"- {key}: {why}\n" for key, why in WHY.items())]
    return "".join(lines)


def run(*, began_at: datetime, commit: str, took_s: int) -> str:
    """Of a run in which every cell was ok."""
    return (
        f"\nLast played whole on {began_at:%Y-%m-%d} from {began_at:%H:%M} UTC, at commit"
        f" {commit}: {len(list(cells()))} cells in {took_s:,} s.\n"
    )


_HEAD = """# Faults and phases

What goes wrong, by row, in which phase of work's life, by column: {count} cells, each played
against a real API server with its controllers, its scheduler and KWOK. Three workloads come to
the phase, a single pod, a gang of three and a MIG slice; it goes wrong for the one that is named.
A cell is ok when the fault was met, all three ended as they should, and then nothing was lost,
started twice or left over (`tests/crash/verdict.py`). `make faults` plays all, prints this table
and, where all is well, writes it, and under it when that was, at which commit and how long it
took. The suite plays all too, and a test compares the table, not what is under it.

"""
