"""Keeps child processes running: their output, their restarts, their end. One thread, no sleeps.

What must not live here: which processes those are (processes.py).
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from controlplane.demo.processes import Service
from controlplane.demo.terminal import Terminal
from controlplane.embedded.backing import Server
from controlplane.embedded.process import StartFailed, signal_group, spawn

_LONGEST_BACKOFF_S = 30.0
_STEADY_S = 30.0  # a child that ran this long starts anew in counting its failures
PATIENCE_S = 10.0  # between TERM and KILL; killing loses nothing, it is only less tidy


class Stopped(Exception):
    """Someone asked for the end: Ctrl-C, TERM, a closed terminal."""


@dataclass(slots=True)
class _Backoff:
    failures: int = 0
    due_at: float = 0.0  # monotonic; when to start again, 0 while it runs

    def fail(self, ran_s: float) -> float:
        """Note an end after `ran_s`; returns the seconds to wait."""
        self.failures = 1 if ran_s > _STEADY_S else self.failures + 1
        wait_s = min(0.25 * 2.0 ** min(self.failures, 9), _LONGEST_BACKOFF_S)
        self.due_at = time.monotonic() + wait_s
        return wait_s


@dataclass(slots=True)
class _Child:
    service: Service
    process: subprocess.Popen[bytes]
    started_at: float
    again: bool
    backoff: _Backoff = field(default_factory=_Backoff)
    unfinished: bytes = b""


@dataclass(slots=True)
class _Watched:
    server: Server
    started_at: float
    backoff: _Backoff = field(default_factory=_Backoff)


class Supervisor:
    """Use inside `listening()`; `turn` does a bit of everything that is due."""

    def __init__(self, *, terminal: Terminal, cwd: Path) -> None:
        self.terminal = terminal
        self.environ: Mapping[str, str] = {}
        self._cwd = cwd
        self._children: list[_Child] = []
        self._watched: dict[str, _Watched] = {}
        self._selector = selectors.DefaultSelector()
        self._requests = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals: an end asked for becomes `Stopped` in `turn`, children wake it."""
        woken, waker = os.pipe()
        for end in (woken, waker):
            os.set_blocking(end, False)
        self._selector.register(woken, selectors.EVENT_READ)
        old_waker = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._on_request) for number in asked}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(old_waker)
            self._selector.close()
            os.close(woken)
            os.close(waker)

    def start(self, service: Service, *, again: bool = True) -> None:
        """Start a child; `again` restarts it whenever it ends."""
        process = self._spawn(service)
        self._children.append(_Child(service, process, time.monotonic(), again))

    def run(self, service: Service) -> int:
        """Start a child and return its exit status."""
        self.start(service, again=False)
        child = self._children[-1]
        self.turn_until(lambda: child.process.poll() is not None)
        self._read_rest(child)
        self._children.remove(child)
        return child.process.returncode

    def watch(self, name: str, server: Server) -> None:
        """Restart a started server when it ends by itself; `stop` ends it, the latest first."""
        self._watched[name] = _Watched(server, time.monotonic())

    def check(self) -> None:
        """Raise Stopped when an end was asked for."""
        if self._requests or self.terminal.lost:
            raise Stopped

    def turn_until(self, done: Callable[[], bool], *, within_s: float = float("inf")) -> bool:
        """Turn until `done`, or False when the time is over. Raises Stopped."""
        deadline = time.monotonic() + within_s
        while not done():
            if time.monotonic() > deadline:
                return False
            self.turn(0.1)
        return True

    def turn(self, timeout_s: float) -> None:
        """Wait for news up to `timeout_s`, pass on output, restart what is due. Raises Stopped."""
        backoffs = [child.backoff for child in self._children]
        backoffs += [watched.backoff for watched in self._watched.values()]
        waits = [backoff.due_at - time.monotonic() for backoff in backoffs if backoff.due_at]
        self._pump(max(0.0, min([timeout_s, *waits])))
        self.check()
        for child in self._children:
            self._tend(child)
        for name, watched in self._watched.items():
            self._tend_server(name, watched)

    def stop(self) -> None:
        """End all children, then the servers; a second request kills instead of asking."""
        before = self._requests
        deadline = time.monotonic() + PATIENCE_S
        for child in self._children:
            child.backoff.due_at = 0.0
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        while any(child.process.poll() is None for child in self._children):
            if time.monotonic() > deadline or self._requests > before:
                break
            self._pump(0.1)
        for child in self._children:
            signal_group(child.process, signal.SIGKILL)
            child.process.wait()
            self._read_rest(child)
        self._children.clear()
        for watched in reversed(self._watched.values()):
            watched.server.stop()
        self._watched.clear()

    def _on_request(self, _number: int, _frame: FrameType | None) -> None:
        self._requests += 1

    def _spawn(self, service: Service) -> subprocess.Popen[bytes]:
        process = spawn(
            service.command,
            cwd=self._cwd,
            env={**self.environ, **service.environ},
            output=subprocess.PIPE,
        )
        if process.stdout is not None:
            os.set_blocking(process.stdout.fileno(), False)
            self._selector.register(process.stdout, selectors.EVENT_READ, process)
        return process

    def _pump(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:  # a signal woke us
                with contextlib.suppress(BlockingIOError):
                    os.read(key.fd, 4096)
                continue
            for child in self._children:
                if child.process is key.data:
                    self._read(child)

    def _read(self, child: _Child) -> bool:
        """Pass on what the child wrote; False when there was nothing."""
        stdout = child.process.stdout
        if stdout is None or stdout.closed:
            return False
        try:
            data = os.read(stdout.fileno(), 65536)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(stdout)
            stdout.close()
        *lines, child.unfinished = (child.unfinished + data).split(b"\n")
        for line in lines:
            self.terminal.say(line.decode(errors="replace"), child.service.name)
        return bool(data)

    def _read_rest(self, child: _Child) -> None:
        while self._read(child):
            pass
        if child.unfinished:
            self.terminal.say(child.unfinished.decode(errors="replace"), child.service.name)
            child.unfinished = b""
        stdout = child.process.stdout
        if stdout is not None and not stdout.closed:  # a descendant still holds the other end
            self._selector.unregister(stdout)
            stdout.close()

    def _tend(self, child: _Child) -> None:
        if child.backoff.due_at:
            if time.monotonic() >= child.backoff.due_at:
                child.backoff.due_at = 0.0
                child.process = self._spawn(child.service)
                child.started_at = time.monotonic()
            return
        status = child.process.poll()
        if status is None or not child.again:
            return
        signal_group(child.process, signal.SIGKILL)  # what a crashed parent left behind
        self._read_rest(child)
        wait_s = child.backoff.fail(time.monotonic() - child.started_at)
        name = child.service.name
        self.terminal.say(f"{name} {ending(status)}; starting it again in {wait_s:g} s")

    def _tend_server(self, name: str, watched: _Watched) -> None:
        if watched.server.alive() or time.monotonic() < watched.backoff.due_at:
            return
        if not watched.backoff.due_at:
            wait_s = watched.backoff.fail(time.monotonic() - watched.started_at)
            self.terminal.say(f"{name} ended by itself; starting it again in {wait_s:g} s")
            return
        try:
            watched.server.start()
        except StartFailed as error:
            wait_s = watched.backoff.fail(0.0)
            self.terminal.say(f"{error.message} Trying again in {wait_s:g} s.")
        else:
            watched.backoff.due_at = 0.0
            watched.started_at = time.monotonic()


def ending(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with status {status}"
    return f"was killed by {signal.Signals(-status).name}"
