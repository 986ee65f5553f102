"""The other end of child.py: asks for steps, says how they ended."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Self

SHORT_S = 1
"""What leases and claims last here: a dead holder's run out while a test waits for it."""


@dataclass
class Children:
    _process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, *, database: str, hold_s: int = SHORT_S, **environ: str) -> Self:
        """`hold_s` is what leases and claims last in them, `environ` what is otherwise in
        theirs."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.child"],
            env={**environment(database=database, hold_s=hold_s), **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return cls(process)

    def run(self, step: str, *, crash: str = "", **arguments: object) -> None:
        """One step to its end, or to the crash point, which has to be reached."""
        answer = self._ask(do="run", step=step, crash=crash, arguments=arguments)
        if crash:
            assert answer["status"] == -signal.SIGKILL, f"{crash} was not reached: {answer}"
        else:
            assert answer["status"] == 0, answer["error"]

    def spawn(self, step: str, *, crash: str = "", **arguments: object) -> int:
        """A child that goes on by itself; its process id."""
        pid = self._ask(do="spawn", step=step, crash=crash, arguments=arguments)["pid"]
        assert isinstance(pid, int)
        return pid

    def kill(self, pid: int) -> None:
        """SIGKILL, and wait for its end."""
        os.kill(pid, signal.SIGKILL)
        self.reap(pid)

    def ended(self, pid: int) -> bool:
        """Whether it has died by itself; it is reaped then."""
        return self._ask(do="look", pid=pid)["status"] is not None

    def reap(self, pid: int) -> int:
        """Wait for its end; the exit status, negative for a signal."""
        status = self._ask(do="reap", pid=pid)["status"]
        assert isinstance(status, int)
        return status

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=20)

    def _ask(self, **asked: object) -> dict[str, Any]:  # Any: JSON
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, "the parent of the children has died"
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer


def environment(*, database: str, hold_s: int = SHORT_S) -> dict[str, str]:
    """This process's, with that database, and leases and claims that last so long."""
    # Not by urlunsplit: it would lose the empty host before a socket's path.
    place, _, query = os.environ["DATABASE_URL"].partition("?")
    return {
        **os.environ,
        "DATABASE_URL": f"{place.rpartition('/')[0]}/{database}?{query}",
        "BERTH_LEASE_S": str(hold_s),
        "BERTH_CLAIM_S": str(hold_s),
    }
