"""Where the control plane's binaries are and how to get them: `tests/kube/build` knows both."""

import os
import subprocess
from pathlib import Path

_HERE = Path(__file__).parent
_BUILDS = {"": _HERE / "build", "floor": _HERE / "floor" / "build"}
"""By what BERTH_KUBE says: of the newest Kubernetes, and of the oldest that Berth supports."""
_NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok")


class NotBuilt(Exception):
    """The binaries are not there or could not be made; the message says what it takes."""


def is_oldest() -> bool:
    """Whether it is the oldest Kubernetes, which has not all that the newest has."""
    return _asked() == "floor"


def version() -> str:
    """Which one the module files name."""
    return "v1.30.14" if is_oldest() else "v1.36.3"


def find() -> Path:
    """The folder of the binaries that match the module files; NotBuilt when one is missing."""
    where = subprocess.run([_build(), "--where"], capture_output=True, text=True, check=False)
    if where.returncode != 0:
        raise NotBuilt(f"a working tests/kube/build, which said: {where.stderr.strip()}")
    folder = Path(where.stdout.strip())
    if not all(os.access(folder / name, os.X_OK) for name in _NAMES):
        command = "make floor" if is_oldest() else "make kube"
        raise NotBuilt(f"the control plane built once by `{command}` (Go 1.26, about 10 minutes)")
    return folder


def build() -> Path:
    """Build what is missing and return the folder; progress goes to stderr."""
    built = subprocess.run([_build()], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise NotBuilt(
            "a tests/kube/build that succeeds; what it printed says why this one failed"
        )
    return Path(built.stdout.strip())


def _asked() -> str:
    return os.environ.get("BERTH_KUBE", "")


def _build() -> Path:
    if (script := _BUILDS.get(_asked())) is None:
        raise NotBuilt(f"BERTH_KUBE to be floor, or not set: it is {_asked()!r}")
    return script
