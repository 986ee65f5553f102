"""Where the control plane's binaries are and how to get them: `tests/kube/build` knows both."""

import os
import subprocess
from pathlib import Path

_BUILD = Path(__file__).with_name("build")
_NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok")


class NotBuilt(Exception):
    """The binaries are not there or could not be made; the message says what it takes."""


def find() -> Path:
    """The folder of the binaries that match the module files; NotBuilt when one is missing."""
    where = subprocess.run([_BUILD, "--where"], capture_output=True, text=True, check=False)
    if where.returncode != 0:
        raise NotBuilt(f"a working tests/kube/build, which said: {where.stderr.strip()}")
    folder = Path(where.stdout.strip())
    if not all(os.access(folder / name, os.X_OK) for name in _NAMES):
        raise NotBuilt("the control plane built once by `make kube` (Go 1.26, about 10 minutes)")
    return folder


def build() -> Path:
    """Build what is missing and return the folder; progress goes to stderr."""
    built = subprocess.run([_BUILD], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise NotBuilt(
            "a tests/kube/build that succeeds; what it printed says why this one failed"
        )
    return Path(built.stdout.strip())
