"""`make smoke` as a user runs it: an installation of its own, the default steps, the verdict."""

import subprocess
import sys

from tests.bench.report import plain_environ
from tests.demo.running import PROJECT


def smoke(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "smoke", *words],
        cwd=PROJECT,
        env=plain_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_the_default_steps_pass_and_print_their_figures() -> None:
    done = smoke()
    assert done.returncode == 0, done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    head = rows["workload"].split()
    assert head[0] == "workload"
    for name, user, gpus in (("smoke-mig", "ben", "1 x 1"), ("smoke-gang", "cleo", "2 x 4")):
        assert user in rows[name]
        assert gpus in rows[name]
        assert " EUR " in rows[name]
    assert "smoke passed" in done.stdout
    assert "stopped; nothing of it runs any more" in done.stdout


def test_steps_that_fail_are_the_verdict() -> None:
    done = smoke("--steps", "tests.demo.no_such_steps")
    assert done.returncode == 1
    assert "smoke failed" in done.stdout
    assert "stopped; nothing of it runs any more" in done.stdout
