"""Programs for Node that tests run beside Berth, with the packages of their lock files."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from tests.parts import missing


def _installed(sources: Path, *, part: str) -> Path:
    """A folder with what `sources` has and its packages: installed once a version, below the
    user's cache."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing(part, "Node 20 or later with npm (Debian: apt install nodejs npm)")
    files = sorted(each for each in sources.iterdir() if each.is_file())
    key = sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "berth" / "npm" / key
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            for file in files:
                shutil.copy(file, folder)
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True)
            (folder / "whole").touch()
    return folder


@contextmanager
def serving(sources: Path, *arguments: str, part: str) -> Iterator[None]:
    """The program `serve.js` of those sources, from when it says that it answers."""
    with subprocess.Popen(
        ["node", "serve.js", *arguments],
        cwd=_installed(sources, part=part),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "answers\n"
            yield
        finally:
            process.kill()
