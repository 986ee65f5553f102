"""The build script, with a stand-in for Go that is quick and can be made to fail."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

BUILD = Path(__file__).with_name("build")
BINARIES = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok"}
_TOOLS = [
    *("cat", "chmod", "cut", "dirname", "head", "ln", "mkdir", "mv", "readlink", "rm", "sed"),
    *("sha256sum", "shasum", "sleep", "tail", "uname"),  # one of the two checksums will do
]

# Notes each call, then makes the file that follows -o.
WORKING_GO = """#!/bin/sh
echo "$*" >>"$CALLS"
sleep 0.1
while [ "$1" != -o ]; do shift; done
printf 'built' >"$2" && chmod +x "$2"
"""


class Machine:
    """A PATH with the usual tools and the Go of the test's choice, and an empty cache."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.cache, self.log = folder / "bin", folder / "cache", folder / "calls"
        self.bin.mkdir()
        self.log.touch()
        for tool in _TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)

    def install_go(self, script: str) -> None:
        go = self.bin / "go"
        go.write_text(script)
        go.chmod(0o755)

    def build(self, *arguments: str, script: Path = BUILD) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", script, *arguments],
            env={
                "PATH": str(self.bin),
                "BERTH_KUBE_CACHE": str(self.cache),
                "CALLS": str(self.log),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_builds_five_static_binaries_and_prints_their_folder(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    folder = Path(machine.build().stdout.strip())
    assert folder.parent == machine.cache
    assert {path.name for path in folder.iterdir()} == BINARIES
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in machine.calls()[0]
    assert all("-trimpath" in call for call in machine.calls())


def test_the_oldest_is_built_of_modules_of_its_own(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    newest = Path(machine.build().stdout.strip())
    made = machine.build(script=BUILD.parent / "floor" / "build")
    assert made.returncode == 0, made.stderr
    assert Path(made.stdout.strip()) != newest
    assert {path.name for path in Path(made.stdout.strip()).iterdir()} == BINARIES
    calls = machine.calls()[len(BINARIES) :]
    assert "-X k8s.io/component-base/version.gitVersion=v1.30.14" in calls[0]


def test_it_builds_nothing_a_second_time(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    first = machine.build()
    again = machine.build()
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert len(machine.calls()) == len(BINARIES)


def test_two_builds_at_once_share_the_work(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: machine.build(), range(2))
    assert (one.returncode, two.returncode, one.stdout) == (0, 0, two.stdout)
    assert len(machine.calls()) == len(BINARIES)


def test_a_lock_left_by_a_dead_build_is_no_obstacle(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    folder = Path(machine.build("--where").stdout.strip())
    folder.mkdir(parents=True)
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    (folder / "lock").symlink_to(str(dead.pid))
    (folder / f"kwok.{dead.pid}").write_text("half")
    assert machine.build().returncode == 0
    assert {path.name for path in folder.iterdir()} == BINARIES


def test_asking_where_builds_nothing(machine: Machine) -> None:
    asked = machine.build("--where")
    assert Path(asked.stdout.strip()).parent == machine.cache
    assert not machine.cache.exists()


@pytest.mark.parametrize(
    ("go", "sentence"),
    [
        (None, "Go is needed to build the control plane and is not on the PATH"),
        (
            "[ $1 = env ] && echo go1.24.1 && exit\n"
            "echo 'go: go.mod requires go >= 1.26.0 (running go 1.24.1)' >&2; exit 1",
            "Go 1.26.0 or newer is needed; this is go1.24.1.",
        ),
        (
            "[ $1 = env ] && echo /home/ada/.cache/go-build && exit\n"
            "echo 'write $WORK/b001/_pkg_.a: no space left on device' >&2; exit 1",
            "The disk is full: a first build needs about 6 GB",
        ),
        (
            "echo 'main.go:1: it does not compile' >&2; exit 1",
            "kube-apiserver could not be built; the lines above say why.",
        ),
    ],
    ids=["no Go", "an old Go", "a full disk", "anything else"],
)
def test_a_failure_is_one_plain_sentence(machine: Machine, go: str | None, sentence: str) -> None:
    if go is not None:
        machine.install_go(f"#!/bin/sh\n{go}\n")
    failed = machine.build()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.splitlines()[-1].startswith(f"tests/kube/build: {sentence}")


def test_a_cache_that_cannot_be_written_is_one_plain_sentence(machine: Machine) -> None:
    machine.install_go(WORKING_GO)
    machine.cache.write_text("a file where the folder should be")
    failed = machine.build()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.endswith("cannot be made; set BERTH_KUBE_CACHE to one that can.\n")
