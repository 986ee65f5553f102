"""A demo with small stand-in children, run as a process of its own by the tests.

What must not live here: anything of the real table; only the supervisor and the servers are real.
"""

import sys
from functools import partial
from pathlib import Path

from controlplane.demo.folder import Folder
from controlplane.demo.ports import HOST
from controlplane.demo.processes import Place, Service, Table
from controlplane.demo.run import Demo
from controlplane.demo.terminal import Terminal
from controlplane.embedded.process import StartFailed

# Counts its starts in the data folder and has a child of its own, which does or does not end
# with its parent: Celery's pool processes do.
_WORKER = """
import pathlib, signal, subprocess, sys, os
from controlplane.embedded.process import dies_with_parent
note = pathlib.Path(sys.argv[1]) / "starts.txt"
arm = dies_with_parent(signal.SIGKILL) if sys.argv[2] != "disloyal" else None
with note.open("a") as file:
    file.write(f"{os.getpid()}\\n")
print("started", flush=True)
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("deaf", flush=True)
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
subprocess.Popen(sleep, preexec_fn=arm).wait()
"""
_BOOTSTRAP = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS starts (at timestamptz)")
    connection.execute("INSERT INTO starts VALUES (now())")
    print("start", connection.execute("SELECT count(*) FROM starts").fetchone()[0])
"""


def table(place: Place, *, kin: str) -> Table:
    python = (sys.executable, "-c")
    web = (sys.executable, "-m", "http.server", str(place.port), "--bind", HOST)
    return Table(
        first=(Service("stubborn", (*python, _STUBBORN)),),
        bootstrap=Service("bootstrap", (*python, _BOOTSTRAP)),
        rest=(
            Service("web", web, port=place.port, health="/"),
            Service("worker", (*python, _WORKER, str(place.folder.path), kin)),
        ),
    )


# Ends at TERM, but only after it said so: the last words have to be seen.
_STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit("last words"))
while True:
    signal.pause()
"""


def main(data: str, port: str, kin: str) -> None:
    try:
        folder = Folder.open(Path(data))
        demo = Demo(
            folder=folder,
            terminal=Terminal(sys.stdout),
            port=int(port) if port else None,
            tables=partial(table, kin=kin),
        )
        demo.until_stopped()
    except StartFailed as error:
        print(f"demo: {error.message}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
