"""An installation of Berth for one benchmark: processes of its own, as `make demo` starts them,
one simulated cluster, and the benchmark's own steps beside them.

What must not live here: what the steps do (`beside.py`, `*_steps.py`).
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from controlplane.demo.folder import Folder
from controlplane.demo.processes import Place, Service, Table, idle_table, opening
from controlplane.demo.run import Demo
from controlplane.demo.terminal import Quiet
from controlplane.embedded.place import temporary
from controlplane.embedded.process import StartFailed, server_account
from controlplane.trace.submission import Json

_STEPS = "steps"
_ENVIRON = {
    "DJANGO_SETTINGS_MODULE": "controlplane.settings.dev",
    # As in production: the demo meters and estimates more often, to be looked at.
    "BERTH_METER_S": "60",
    "BERTH_FORECAST_S": "60",
    # Processes are found by their command lines, which Celery's workers overwrite where they can.
    "NOSETPS": "1",
}


@contextmanager
def folder(kind: str) -> Iterator[Path]:
    """A private folder for everything; gone in the end."""
    made, lock = temporary(kind, server_account())
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


@dataclass(frozen=True, kw_only=True)
class Apart:
    """`layout` is the simulated cluster's file of nodes. `bootstrap` runs before the services
    start and `steps` beside them, both as `python -m MODULE PLAN`. The plan, JSON, is `plan` with
    the keys `url`, `tokens` and `report` (files), and `services` (names with command lines).
    """

    folder: Path
    cluster: str
    layout: Path
    bootstrap: str
    steps: str
    plan: Mapping[str, object]
    environ: Mapping[str, str]

    def run(self) -> Json:
        """Start, run the steps, stop; the report that they wrote. Raises SystemExit when it went
        wrong or was interrupted."""
        terminal = Quiet(sys.stdout, steps=_STEPS)
        report = self.folder / "report.json"
        try:
            status = self._run(terminal, report)
        except StartFailed as error:
            terminal.plain(error.message)
            status = 1
        if status != 0:
            terminal.show_kept()
            raise SystemExit(f"{self.cluster}: the path went wrong; the lines above say how.")
        found: Json = json.loads(report.read_text())
        return found

    def _run(self, terminal: Quiet, report: Path) -> int | None:
        demo = Demo(
            folder=Folder.open(self.folder / "data"),
            terminal=terminal,
            port=0,
            tables=self._table,
            clusters=((self.cluster, str(self.layout)),),
        )
        table = self._table(demo.place)
        whole = {
            **self.plan,
            "url": demo.place.url,
            "tokens": str(demo.folder.tokens),
            "report": str(report),
            "services": [(each.name, each.command) for each in (*table.first, *table.rest)],
        }
        self._plan_file.write_text(json.dumps(whole))
        return demo.during(lambda: demo.run(opening(self._module(_STEPS, self.steps), demo.place)))

    def _table(self, place: Place) -> Table:
        idle = idle_table(place)
        return Table(
            first=tuple(
                replace(service, command=(*service.command, "--start-delay", "0"))
                for service in idle.first
            ),
            bootstrap=self._module("bootstrap", self.bootstrap),
            rest=tuple(
                replace(service, environ={**service.environ, **self._environ})
                for service in idle.rest
            ),
        )

    def _module(self, name: str, module: str) -> Service:
        command = (sys.executable, "-m", module, str(self._plan_file))
        return Service(name, command, environ=self._environ)

    @property
    def _environ(self) -> dict[str, str]:
        return {**_ENVIRON, **self.environ}

    @property
    def _plan_file(self) -> Path:
        return self.folder / "plan.json"
