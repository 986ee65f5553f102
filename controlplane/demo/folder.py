"""The folder a demo keeps everything in: where each file lies, the lock, the reset.

What must not live here: what is inside the files.
"""

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, Self

from controlplane.embedded.place import claim, need_space, passage, plainly, private, reachable
from controlplane.embedded.process import StartFailed, server_account

NEEDED_MIB = 300


class Folder:
    """One demo's data. `open` locks it; a second demo on the same data is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.static = path / "static"
        self.mail = path / "mail"
        self.tokens = path / "tokens.json"
        self.beat = path / "beat"
        self._secret = path / "secret"
        self._running = path / "running.json"
        self._lock: int | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make and lock the folder. Raises StartFailed with one sentence when that can't be."""
        folder = cls(Path(os.path.abspath(path)))
        with plainly(folder.path):
            folder._make()
            folder._lock = claim(folder.path)
            if folder._lock is None:
                raise StartFailed(folder._who_runs())
            need_space(folder.path, NEEDED_MIB)
            for part in (folder.logs, folder.static):
                private(part)
        return folder

    @property
    def postgres(self) -> Path:
        """PostgreSQL's data: inside; in /var/tmp when we are root and `nobody` can't get here."""
        account = server_account()
        if reachable(self.path, account):
            return self.path / "postgres"
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]
        return passage(Path(f"/var/tmp/berth-{name}"), account) / "postgres"  # noqa: S108

    def simulator_state(self, cluster: str) -> Path:
        return self.path / f"{cluster}.json"

    def reset(self) -> None:
        """Forget everything a demo wrote; what else lies in the folder stays."""
        with plainly(self.path):
            for tree in (self.postgres, self.logs, self.static, self.mail):
                if tree.exists():
                    shutil.rmtree(tree)
            for tree in (self.logs, self.static, self.mail):
                private(tree)
            for file in (*self.path.glob("*.json*"), *self.path.glob("beat*"), self._secret):
                file.unlink(missing_ok=True)

    def secret(self) -> str:
        """The signing key of this demo's sessions, made once."""
        if not self._secret.exists():
            write_private(self._secret, secrets.token_urlsafe(48))
        return self._secret.read_text()

    def note_running(self, url: str) -> None:
        """Leave word for a second start."""
        write_private(self._running, json.dumps({"pid": os.getpid(), "url": url}))

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            self._running.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _make(self) -> None:
        if self.path.is_dir() and not (self.path / "lock").exists() and any(self.path.iterdir()):
            raise StartFailed(
                f"{self.path} is not empty and was not made by a demo; choose another folder."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        passage(self.path, server_account())

    def _who_runs(self) -> str:
        try:
            running: dict[str, Any] = json.loads(self._running.read_text())  # Any: JSON
            who = f" as process {running['pid']} at {running['url']}"
        except (OSError, ValueError, KeyError):
            who = ""
        return (
            f"A demo on {self.path} already runs{who}; "
            "stop it first, or give this one its own folder with --data."
        )


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; it is never readable for others."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.rename(path)
