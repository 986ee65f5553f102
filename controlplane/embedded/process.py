"""How a server process is started, waited for and ended, so that none outlives its parent.

What must not live here: anything about PostgreSQL, Valkey or Django.
"""

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from controlplane.kernel.errors import Unavailable

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: the child may only call what is already there.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
POLL_S = 0.02


class StartFailed(Unavailable):
    """A server, or the demo, can't start; the message is one plain sentence for its user."""

    default_code = "start-failed"


@dataclass(frozen=True, slots=True)
class Account:
    """The user a server runs as."""

    uid: int
    gid: int


def server_account() -> Account | None:
    """Who PostgreSQL runs as: None is ourselves; `nobody` when we are root, which it refuses."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def dies_with_parent(death_signal: int) -> Callable[[], None]:
    """A `preexec_fn`: the kernel sends the child `death_signal` when the forking thread ends.

    That is the thread, not the process, so long-lived children are started from the main thread.
    Nothing happens outside Linux; there a leftover is found at the next start.
    """
    parent = os.getpid()

    def arm() -> None:
        if _libc is None:
            return
        _libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died between the fork and the call above
            os._exit(1)

    return arm


def spawn(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    output: IO[bytes] | int,
    account: Account | None = None,
    death_signal: int = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """A child in a process group of its own, so that Ctrl-C reaches only us, who then stop it."""
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
        preexec_fn=dies_with_parent(death_signal),  # two C calls: safe beside threads
    )


def until(check: Callable[[], bool], *, within_s: float) -> bool:
    """Whether `check` became true within the time; asked again every few milliseconds."""
    deadline = time.monotonic() + within_s
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send `number` to the child and its descendants; those already gone are fine."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def end(process: subprocess.Popen[bytes], steps: Sequence[tuple[int, float]]) -> None:
    """Ask the child to end by each (signal, seconds to wait) in turn, then kill its group."""
    for number, patience_s in steps:
        if process.poll() is not None:
            break
        process.send_signal(number)
        if until(lambda: process.poll() is not None, within_s=patience_s):
            break
    signal_group(process, signal.SIGKILL)
    process.wait()


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log file for an error message; "" when there is none."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])
