"""The process that dies: `python -m tests.crash.child` forks one child for each step asked for.

One start pays for the imports; a forked child makes its own connections. One JSON object a line:

    {"do": "run", "step": "dispatch", "crash": "D3"}   → {"status": -9, "error": ""}
    {"do": "spawn", "step": "worker"}                  → {"pid": 4711}
    {"do": "reap", "pid": 4711}                        → {"status": -9}

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

from controlplane.kernel import crash  # Django has to be set up first
from tests.crash import steps


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
        case "reap":
            _, status = os.waitpid(asked["pid"], 0)
            spawned.discard(asked["pid"])
            return {"status": os.waitstatus_to_exitcode(status)}
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
        crash.arm(asked.get("crash", ""))
        steps.STEPS[asked["step"]](**asked.get("arguments", {}))
    except BaseException:  # whatever it was, the parent has to hear of it
        os.write(errors, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
