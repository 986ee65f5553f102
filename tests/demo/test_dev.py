"""./dev on machines that lack something, by stand-ins for uv and Python on a PATH of their own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.demo.running import PROJECT

# Of the system; everything else that ./dev calls is a stand-in or missing.
TOOLS = ("sh", "dirname", "grep", "mkdir", "cp", "env")
UV = """#!/bin/sh
case $1 in
  --version) echo "uv 0.13.8 (stand-in)" ;;
  *) echo "UV_PYTHON=$UV_PYTHON" > said; printf '%s' "$UV_FAILS" >&2; [ -z "$UV_FAILS" ] ;;
esac
"""
# Says what it is and makes an environment whose pip brings the uv above.
PYTHON = """#!/bin/sh
case "$*" in
  *version_info*) [ "{usable}" = yes ] ;;
  *sys.executable*) echo "$0" ;;
  *venv*)
    [ -z "$VENV_FAILS" ] || {{ echo "$VENV_FAILS" >&2; exit 1; }}
    mkdir -p .dev/uv/bin; cp "$0" .dev/uv/bin/python ;;
  *pip*)
    [ -z "$PIP_FAILS" ] || {{ echo "$PIP_FAILS" >&2; exit 1; }}
    cp uv-wheel .dev/uv/bin/uv ;;
esac
"""
NO_NETWORK = (
    "error: Failed to fetch: `https://index.example/simple/django/`\n"
    "  Caused by: error sending request for url\n  Caused by: dns error: failed to lookup\n"
)
FULL = "error: failed to write to file: No space left on device (os error 28)\n"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Machine:
    """A checkout of nothing but ./dev, and what the machine has on its PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or "")
        shutil.copy(PROJECT / "dev", root / "dev")
        program(root / "uv-wheel", UV)
        program(root / ".venv/bin/python", '#!/bin/sh\necho "ran: $*"\n')

    def has_uv(self) -> "Machine":
        program(self.bin / "uv", UV)
        return self

    def has_python(self, name: str, *, usable: str = "yes") -> "Machine":
        program(self.bin / name, PYTHON.format(usable=usable))
        return self

    def dev(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["./dev", *words],
            cwd=self.root,
            env={"PATH": str(self.bin), "HOME": str(self.root), **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    def python_of_the_environment(self) -> str:
        return (self.root / "said").read_text().removeprefix("UV_PYTHON=").strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "checkout")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert "ran:" not in done.stdout
    return done.stderr.splitlines()[-1]


def test_a_python_in_range_is_used(machine: Machine) -> None:
    machine.has_uv().has_python("python3.12").has_python("python3.11")
    assert machine.dev("manage", "check").stdout == "ran: manage.py check\n"
    assert machine.python_of_the_environment() == str(machine.bin / "python3.12")


def test_a_shim_that_does_not_work_is_passed_over(machine: Machine) -> None:
    machine.has_uv().has_python("python3.13", usable="no").has_python("python3.14")
    machine.dev("manage")
    assert machine.python_of_the_environment() == str(machine.bin / "python3.14")


def test_with_an_older_python_only_one_in_range_is_asked_for(machine: Machine) -> None:
    machine.has_python("python3", usable="no").has_python("python3.11", usable="no")
    assert machine.dev("manage").stdout == "ran: manage.py\n"
    assert machine.python_of_the_environment() == "3.13"


def test_a_python_that_the_user_names_is_left_alone(machine: Machine) -> None:
    machine.has_uv().has_python("python3.13")
    machine.dev("manage", UV_PYTHON="3.12")
    assert machine.python_of_the_environment() == "3.12"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (FULL, "dev: the disk is full; the environment takes about 1 GB."),
        (NO_NETWORK, "dev: the package index can't be reached; see the network, or the proxy."),
        (
            "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.",
            "dev: the environment could not be made; the lines above say why.",
        ),
    ],
)
def test_uvs_failure_is_one_sentence(machine: Machine, said: str, why: str) -> None:
    machine.has_uv().has_python("python3.13")
    done = machine.dev(UV_FAILS=said)
    assert last_line(done) == why
    assert done.stderr.startswith(said.rstrip())


@pytest.mark.parametrize(
    "said", ["error: No interpreter found for Python 3.13 in managed installations", NO_NETWORK]
)
def test_no_python_and_no_way_to_one_is_one_sentence(machine: Machine, said: str) -> None:
    why = last_line(machine.has_uv().dev(UV_FAILS=said))
    assert why.startswith("dev: there is no ")
    assert "Python 3.12-3.14" in why


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({"VENV_FAILS": "ensurepip is not available."}, "dev: there is no usable Python; "),
        ({"VENV_FAILS": "[Errno 28] No space left on device"}, "dev: the disk is full; "),
        ({"PIP_FAILS": "[Errno 28] No space left on device"}, "dev: the disk is full; "),
        (
            {"PIP_FAILS": "ERROR: No matching distribution found for uv==0.13.8"},
            "dev: the package index can't be reached; ",
        ),
        ({"PIP_FAILS": "something new"}, "dev: the environment could not be made; "),
    ],
)
def test_without_uv_the_failure_of_bringing_it_is_one_sentence(
    machine: Machine, environ: dict[str, str], why: str
) -> None:
    assert last_line(machine.has_python("python3.13").dev(**environ)).startswith(why)


def test_a_machine_with_neither_is_told_what_to_install(machine: Machine) -> None:
    assert last_line(machine.dev()).startswith("dev: there is no usable Python; install")


@pytest.mark.parametrize(
    ("reset", "words"), [("1", " --reset"), ("0", ""), ("", ""), ("no", ""), ("10", "")]
)
def test_only_reset_1_starts_anew(machine: Machine, reset: str, words: str) -> None:
    machine.has_uv().has_python("python3.13")
    assert machine.dev("demo", RESET=reset).stdout == f"ran: manage.py demo{words}\n"


def test_it_needs_no_more_than_a_posix_shell() -> None:
    shell = shutil.which("dash") or "/bin/sh"
    subprocess.run([shell, "-n", str(PROJECT / "dev")], check=True)
    assert os.access(PROJECT / "dev", os.X_OK)
