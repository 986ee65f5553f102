"""Pure: what a pod's command does, as far as the simulated kubelet plays it."""

import re
from typing import NamedTuple
from zlib import crc32

from clusters.simulator.answers import Json

_SLEEP = re.compile(r"sleep\s+([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd]?)(?:\s*&\s*wait(?:\s+\$!)?)?")
# A shell runs a trap only between commands or in `wait`: before a sleep in the foreground it is
# of no use.
_GRACEFUL = re.compile(r"trap\s+'exit\s+([0-9]{1,3})'\s+(?:SIG)?TERM\s*;.*&\s*wait\b", re.DOTALL)
_EXIT = re.compile(r"exit\s+([0-9]{1,3})")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
SHORTEST_S, LONGEST_S = 30, 90
TERMINATED, KILLED = 143, 137


class Program(NamedTuple):
    """Runs `seconds`, then exits with `code`; on SIGTERM with `stopped`, unless it is `stubborn`
    and does not heed it. `killed`: it ends by wanting more memory than it has. `busy`: it uses its
    devices. `looks`: it tells by its termination message which devices it sees."""

    seconds: float
    code: int
    stubborn: bool = False
    stopped: int = TERMINATED
    killed: bool = False
    busy: bool = False
    looks: bool = False


def program(pod: Json) -> Program:
    """`sleep 5`, `false`, `sh -c 'sleep 5; exit 3'` and so on are played, and a program that stops
    well when told to: `sh -c "trap 'exit 0' TERM; sleep 5 & wait"`. `tail /dev/zero` uses up its
    memory at once. Anything else uses its devices for 30 to 90 seconds, always the same for the
    same pod name, and succeeds. What writes a termination message is Berth's own, and looks for
    devices."""
    container = pod["spec"]["containers"][0]
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    if len(argv) >= 3 and argv[0].rsplit("/")[-1] in ("sh", "bash") and argv[1] == "-c":
        script = argv[2]
        if "/dev/termination-log" in script:
            return Program(0, 0, looks=True)
        played = _script(re.split(r"\s*(?:;|&&|\n)\s*", script.strip()))
        stubborn = bool(re.search(r"trap\s+''\s", script))
        graceful = _GRACEFUL.search(script)
    else:
        played, stubborn, graceful = _script([" ".join(argv)]), False, None
    if played is None:
        name = pod["metadata"]["name"].encode()
        seconds = SHORTEST_S + crc32(name) % (LONGEST_S - SHORTEST_S + 1)
        played = Program(seconds, 0, busy=True)
    stopped = int(graceful[1]) % 256 if graceful else TERMINATED
    return played._replace(stubborn=stubborn, stopped=stopped)


def _script(steps: list[str]) -> Program | None:
    """What a list of commands does; None when one of them is not known."""
    seconds, code = 0.0, 0
    for step in steps:
        if sleep := _SLEEP.fullmatch(step):
            seconds += float(sleep[1]) * _UNITS[sleep[2]]
            code = 0
        elif leave := _EXIT.fullmatch(step):
            return Program(seconds, int(leave[1]) % 256)
        elif step == "tail /dev/zero":
            return Program(seconds, KILLED, killed=True)
        elif step in ("true", "false"):
            code = int(step == "false")
        elif step and not step.startswith(("trap ", "echo ")):
            return None
    return Program(seconds, code) if any(steps) else None
