"""A demo from its start to its end: servers, bootstrap, services, the line that says it is ready.

What must not live here: how children are kept (supervisor.py) or which they are (processes.py).
"""

import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from controlplane.demo import logins, ports
from controlplane.demo.folder import Folder
from controlplane.demo.processes import (
    CLUSTERS,
    Cluster,
    Place,
    Service,
    Table,
    reaching,
    table,
)
from controlplane.demo.supervisor import Stopped, Supervisor, ending
from controlplane.demo.terminal import Terminal
from controlplane.embedded.backing import Backing
from controlplane.embedded.place import plainly, temporary
from controlplane.embedded.process import StartFailed, server_account

PROJECT = Path(__file__).resolve().parents[2]
_READY_S = 120.0


class Demo:
    """One running Berth. `tables` may be replaced by a test's stand-ins, and `clusters`, (name,
    layout) of each, by others."""

    def __init__(
        self,
        *,
        folder: Folder,
        terminal: Terminal,
        port: int | None,
        tables: Callable[[Place], Table] = table,
        clusters: Sequence[tuple[str, str]] = CLUSTERS,
    ) -> None:
        self.folder = folder
        self.terminal = terminal
        chosen, remark = ports.choose(port)
        made = tuple(
            Cluster(name=name, layout=layout, port=ports.free(), token=secrets.token_urlsafe(24))
            for name, layout in clusters
        )
        self.place = Place(folder=folder, port=chosen, clusters=made)
        self.supervisor = Supervisor(terminal=terminal, cwd=PROJECT)
        self._table = reaching(tables(self.place), self.place)
        self._began = time.monotonic()
        if remark:
            terminal.say(remark)

    def until_stopped(self) -> None:
        """Run until someone asks for the end; nothing is left behind, whatever happens."""
        self.during(self._wait)

    def during[Result](self, work: Callable[[], Result]) -> Result | None:
        """Start everything, do `work`, stop everything. None when stopped from outside."""
        try:
            account = server_account()
            with plainly(self.folder.path):
                run, lock = temporary("demo", account)
            try:
                with self.supervisor.listening():
                    try:
                        self._start(run)
                        return work()
                    except Stopped:
                        return None
                    finally:
                        self.terminal.say("stopping")
                        self.supervisor.stop()
                        self.terminal.say("stopped; nothing of it runs any more")
            finally:
                shutil.rmtree(run, ignore_errors=True)
                os.close(lock)
        finally:
            self.folder.close()

    def run(self, service: Service) -> int:
        """One more child, to its end; its exit status."""
        return self.supervisor.run(service)

    def _wait(self) -> None:
        self.terminal.plain(self._welcome())
        while True:
            self.supervisor.turn(60.0)

    def _start(self, run: Path) -> None:
        with plainly(self.folder.path):
            self.folder.note_running(self.place.url)
            backing = Backing(data=self.folder.postgres, run=run, logs=self.folder.logs)
            self.supervisor.environ = self._environ(backing.environ)
        for name, server in backing.servers.items():
            server.start()
            self.supervisor.watch(name, server)
            self.supervisor.check()
        self._tell(f"{' and '.join(backing.servers) or 'no embedded server'} up")
        for service in self._table.first:
            self.supervisor.start(service)
        status = self.supervisor.run(self._table.bootstrap)
        if status != 0:
            raise StartFailed(f"The bootstrap {ending(status)}; its lines above say why.")
        self._tell("database, static files and seed are ready")
        for service in self._table.rest:
            self.supervisor.start(service)
            ready = partial(ports.answers, service.port, service.health)
            if service.health and not self.supervisor.turn_until(ready, within_s=_READY_S):
                raise StartFailed(
                    f"{service.name} gives no answer for {_READY_S:.0f} s; see its lines above."
                )
            if service.health:
                self._tell(f"{service.name} answers")

    def _tell(self, what: str) -> None:
        self.terminal.say(f"{what} ({time.monotonic() - self._began:.1f} s)")

    def _environ(self, backing: Mapping[str, str]) -> dict[str, str]:
        return {
            # Whoever tries Berth wants to see spend and estimates soon, not each minute.
            "BERTH_METER_S": "5",
            "BERTH_FORECAST_S": "15",
            "BERTH_REVIEW_DAYS": "365",
            **os.environ,
            **backing,
            "BERTH_DEMO": "1",
            "BERTH_SECRET_KEY": self.folder.secret(),
            "BERTH_STATIC_ROOT": str(self.folder.static),
            "BERTH_EMAIL_URL": f"file://{self.folder.mail}",
            "BERTH_CLUSTER_NETWORKS": "127.0.0.1/32",  # the simulated clusters'
            "BERTH_SEAL_KEY": self.place.key.public.text,
            "BERTH_DEMO_TOKENS": str(self.folder.tokens),
            "PYTHONUNBUFFERED": "1",
        }

    def _welcome(self) -> str:
        return (
            f"\nBerth is ready: {self.place.url}\n\n{logins.table()}\n\n"
            f"The data is in {self.folder.path}. Ctrl-C stops everything; "
            "`make demo RESET=1` starts anew.\n"
        )
