"""The demo as its user meets it: start, Ctrl-C, crash, second start, what can be wrong.

What must not live here: the services of Berth; small stand-ins run in their place.
"""

import http.client
import os
import signal
import socket
import stat
import time
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from controlplane.demo import ports
from controlplane.demo.supervisor import PATIENCE_S
from tests.demo.conftest import Start
from tests.demo.running import alive, descendants, wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_that_was_asked_for_leaves_no_process(start: Start, number: int) -> None:
    demo = start().ready()
    below = descendants(demo.process.pid)
    assert len(below) >= 10  # stand-ins, a grandchild, PostgreSQL's own, Valkey
    assert demo.ask_to_end(number) == 0
    assert alive(below) == set()
    assert "last words" in demo.said
    assert "stopped; nothing of it runs any more" in demo.said
    assert "received fast shutdown request" in (demo.data / "logs/postgres.log").read_text()


def test_ctrl_c_during_the_start_leaves_no_process(start: Start) -> None:
    demo = start()
    wait_until(lambda: len(descendants(demo.process.pid)) > 0, "a first child")
    assert demo.ask_to_end() == 0
    assert "Berth is ready" not in demo.said
    assert descendants(demo.process.pid) == set()


def test_a_second_ctrl_c_does_not_wait_for_a_child_that_will_not_end(start: Start) -> None:
    demo = start(kin="deaf").ready()
    wait_until(lambda: "worker       | deaf" in demo.said, "a child that ignores TERM")
    below = descendants(demo.process.pid)
    demo.process.send_signal(signal.SIGINT)
    wait_until(lambda: "last words" in demo.said, "the others' end")
    began = time.monotonic()
    assert demo.ask_to_end() == 0
    assert time.monotonic() - began < PATIENCE_S / 2
    assert alive(below) == set()


def test_a_killed_supervisor_leaves_no_orphans_and_the_data_is_good(start: Start) -> None:
    demo = start().ready()
    below = descendants(demo.process.pid)
    demo.ask_to_end(signal.SIGKILL)
    again = start().ready()  # at once: PostgreSQL may still be shutting down
    assert "bootstrap    | start 2" in again.said
    wait_until(lambda: alive(below) - descendants(again.process.pid) == set(), "no orphans")
    assert again.ask_to_end() == 0


def test_a_crashed_child_is_started_again_with_its_descendants_gone(start: Start) -> None:
    demo = start(kin="disloyal").ready()
    first = demo.starts()[-1]
    grandchildren = descendants(first)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(demo.starts()) == 2, "a second start of the worker")
    assert "worker was killed by SIGKILL; starting it again in 0.5 s" in demo.said
    assert alive(grandchildren) == set()
    assert demo.ask_to_end() == 0


def _parent(pid: int) -> int:
    line = Path(f"/proc/{pid}/stat").read_text()
    return int(line.rpartition(")")[2].split()[1])


@pytest.mark.parametrize("server", ["postgres", "valkey-server"])
def test_a_crashed_server_is_started_again(start: Start, server: str) -> None:
    demo = start().ready()
    killed = next(
        pid
        for pid in descendants(demo.process.pid)
        if os.readlink(f"/proc/{pid}/exe").endswith(f"/{server}")
        and _parent(pid) == demo.process.pid  # not one of the server's own children
    )
    os.kill(killed, signal.SIGKILL)
    log = demo.data / "logs" / f"{server.removesuffix('-server')}.log"
    ready = "ready to accept connections"
    wait_until(lambda: log.read_text().lower().count(ready) == 2, f"{server} to be up again")
    assert "ended by itself; starting it again" in demo.said
    assert demo.ask_to_end() == 0


def test_a_second_start_keeps_the_data(start: Start) -> None:
    assert start().ready().ask_to_end() == 0
    again = start().ready()
    assert "bootstrap    | start 2" in again.said
    assert again.ask_to_end() == 0


def test_a_second_demo_on_the_same_data_is_refused_in_one_sentence(start: Start) -> None:
    first = start().ready()
    second = start()
    wait_until(second.over, "the refusal")
    assert second.process.returncode == 1
    assert second.said.count("\n") == 1
    assert f"already runs as process {first.process.pid} at {first.url}" in second.said
    assert not first.over()


def test_a_port_that_was_asked_for_and_is_taken_is_one_sentence(start: Start) -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        demo = start(str(port))
        wait_until(demo.over, "the refusal")
    assert demo.said == f"demo: Port {port} is taken; choose another with --port.\n"


def test_a_default_port_that_is_taken_gives_way_to_a_free_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(ports, "DEFAULT", taken)
        port, remark = ports.choose(None)
    assert port != taken
    assert remark == f"port {taken} is taken, so Berth uses {port}"


def test_it_listens_on_loopback_only(start: Start) -> None:
    demo = start().ready()
    below = {demo.process.pid, *descendants(demo.process.pid)}
    inodes = set()
    for pid in below:
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(handle))
            except OSError:
                continue
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in inodes:
                listening.append(cells[1].split(":")[0])
    assert listening == ["0100007F"]  # 127.0.0.1, the web stand-in alone
    host = urlsplit(demo.url).netloc
    connection = http.client.HTTPConnection(host, timeout=5)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200


def test_what_it_writes_is_private(start: Start) -> None:
    demo = start().ready()
    for path in (demo.data / "logs", demo.data / "postgres"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((demo.data / "secret").stat().st_mode) == 0o600
    # Others may at most pass through, which `nobody` needs when we are root.
    assert stat.S_IMODE(demo.data.stat().st_mode) & 0o066 == 0


def test_a_broken_bootstrap_is_one_sentence_and_leaves_no_process(
    start: Start, data: Path
) -> None:
    demo = start().ready()
    with psycopg.connect(f"postgresql://berth@/berth?host={_sockets(demo.process.pid)}") as on:
        on.execute("DROP TABLE starts")
        on.execute("CREATE VIEW starts AS SELECT now() AS at GROUP BY 1")
    assert demo.ask_to_end() == 0
    broken = start()
    wait_until(broken.over, "the end")
    assert broken.process.returncode == 1
    assert "demo: The bootstrap ended with status 1; its lines above say why.\n" in broken.said
    assert descendants(broken.process.pid) == set()


def _sockets(pid: int) -> str:
    """The folder of PostgreSQL's socket, from its command line."""
    for below in descendants(pid):
        command = Path(f"/proc/{below}/cmdline").read_bytes().decode().split("\0")
        for word in command:
            if word.startswith("unix_socket_directories="):
                return word.partition("=")[2]
    raise AssertionError("no PostgreSQL runs")
