"""Starts an installation of its own for a replay, and the steps beside it.

What must not live here: the steps (replay.py).
"""

import csv
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TextIO

from controlplane.demo.folder import Folder
from controlplane.demo.processes import Place, Service, Table, idle_table, opening
from controlplane.demo.run import Demo
from controlplane.demo.terminal import Quiet
from controlplane.embedded.place import temporary
from controlplane.embedded.process import StartFailed, server_account
from controlplane.kernel.clock import Acceleration
from controlplane.trace.fleet import CLUSTER, Fleet
from controlplane.trace.plan import Plan
from controlplane.trace.reading import BadTrace, NodeRow

STEPS = "replay"
ORIGIN = datetime(2023, 1, 1, tzinfo=UTC)
"""What the accelerated clock shows when Berth starts."""
_PYTHON = (sys.executable, "-m")


def run(plan: Plan, *, keep: bool = False, out: TextIO | None = None) -> int:
    """Replay, then stop and remove everything (with `keep`: once asked to). The exit status."""
    terminal = Quiet(out or sys.stdout, steps=STEPS)
    try:
        nodes = plan.read_nodes()
        Fleet(nodes).gpus()
        plan.read_pods()
    except BadTrace as error:
        terminal.plain(str(error))
        return 1
    scratch, lock = temporary("trace", server_account())
    status: int | None = 1
    try:
        status = _Trace(plan, nodes, scratch, terminal).run(keep=keep)
    except StartFailed as error:
        terminal.plain(f"import-trace: {error.message}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(lock)
    if status != 0:
        terminal.show_kept()
    return 1 if status is None else status


class _Trace:
    """One installation for one replay, below `scratch`."""

    def __init__(
        self, plan: Plan, nodes: Sequence[NodeRow], scratch: Path, terminal: Quiet
    ) -> None:
        folder = Folder.open(scratch / "data")
        self._terminal = terminal
        self._plan_file = scratch / "plan.json"
        layout = scratch / "nodes.csv"
        _write_nodes(layout, nodes)
        clock = Acceleration(start_s=time(), origin_s=ORIGIN.timestamp(), speed=plan.speed)
        self._environ = {
            "DJANGO_SETTINGS_MODULE": os.environ.get(
                "DJANGO_SETTINGS_MODULE", "controlplane.settings.dev"
            ),
            "BERTH_CLOCK": clock.encode() if plan.speed != 1 else "",
            # As in production: the demo meters and estimates more often, to be looked at.
            "BERTH_METER_S": "60",
            "BERTH_FORECAST_S": "60",
        }
        self._demo = Demo(
            folder=folder,
            terminal=terminal,
            port=0,
            tables=self._table,
            clusters=((CLUSTER, str(layout)),),
        )
        table = self._table(self._demo.place)
        services = {service.name: service.command for service in (*table.first, *table.rest)}
        plan = replace(plan, url=self._demo.place.url, tokens=str(folder.tokens))
        plan.with_services(services).write(self._plan_file)

    def run(self, *, keep: bool) -> int | None:
        steps = opening(self._module("controlplane.trace.steps", STEPS), self._demo.place)

        def work() -> int:
            status = self._demo.run(steps)
            while keep:
                self._terminal.plain(f"Berth stays at {self._demo.place.url} until Ctrl-C.")
                self._demo.supervisor.turn_until(lambda: False)
            return status

        return self._demo.during(work)

    def _table(self, place: Place) -> Table:
        idle = idle_table(place)
        return Table(
            first=tuple(map(self._on_our_clock, idle.first)),
            bootstrap=self._module("controlplane.trace.bootstrap", "bootstrap"),
            rest=tuple(map(self._on_our_clock, idle.rest)),
        )

    def _module(self, module: str, name: str) -> Service:
        return self._on_our_clock(Service(name, (*_PYTHON, module, str(self._plan_file))))

    def _on_our_clock(self, service: Service) -> Service:
        return replace(service, environ={**service.environ, **self._environ})


def _write_nodes(path: Path, nodes: Sequence[NodeRow]) -> None:
    """The nodes as the simulator reads them."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
        writer.writerows(
            (node.name, node.cpu_milli, node.memory_mib, node.gpus, node.model) for node in nodes
        )
