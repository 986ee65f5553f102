"""The process that dies: `python -m tests.crash.child` forks one child for each step asked for.

One start pays for the imports; a forked child makes its own connections. One JSON object a line:

    {"do": "run", "step": "dispatch", "crash": "D3"}   → {"status": -9, "error": ""}
    {"do": "spawn", "step": "worker"}                  → {"pid": 4711}
    {"do": "reap", "pid": 4711}                        → {"status": -9}, once it has ended
    {"do": "look", "pid": 4711}                        → the same at once, null while it lives
    {"do": "be", "step": "cycle"}                      → none: does it without a child

What must not live here: the steps (steps.py) and the other end of the pipe (children.py).
"""

import json
import os
import signal
import sys
import traceback
from typing import Any, NoReturn

import django

django.setup()

import controlplane.urls  # noqa: E402, F401  so that no child has to import it
from controlplane.kernel import crash  # noqa: E402  Django has to be set up first
from tests.crash import steps  # noqa: E402


def main() -> None:
    spawned: set[int] = set()
    try:
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line), spawned)), flush=True)
    finally:
        for pid in spawned:
            os.kill(pid, signal.SIGKILL)


def _answer(asked: dict[str, Any], spawned: set[int]) -> dict[str, Any]:  # Any: JSON
    match asked["do"]:
        case "run":
            return _run(asked)
        case "spawn":
            pid = os.fork()
            if pid == 0:
                _be(asked, sys.stderr.fileno())
            spawned.add(pid)
            return {"pid": pid}
        case "reap" | "look" as how:
            pid, status = os.waitpid(asked["pid"], 0 if how == "reap" else os.WNOHANG)
            spawned.discard(pid)
            return {"status": os.waitstatus_to_exitcode(status) if pid else None}
        case "be":
            _be(asked, sys.stderr.fileno())
    raise ValueError(asked)


def _run(asked: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be(asked, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        error = pipe.read()
    _, status = os.waitpid(pid, 0)
    return {"status": os.waitstatus_to_exitcode(status), "error": error}


def _be(asked: dict[str, Any], errors: int) -> NoReturn:  # Any: JSON
    """The child's whole life."""
    os.dup2(2, 1)  # the parent's stdout is for its answers
    try:
        if "crash" in asked:
            crash.arm(asked["crash"])
        steps.STEPS[asked["step"]](**asked.get("arguments", {}))
    except BaseException:  # whatever it was, the parent has to hear of it
        os.write(errors, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
