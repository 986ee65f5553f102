"""Folders for the servers: private, short enough for socket names, reachable for who runs there.

What must not live here: what is put into them.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from controlplane.embedded.process import Account, StartFailed

# A socket's path may have 103 bytes on macOS and 107 on Linux; names below take up to 45.
_LONGEST_BASE = 55
_LOCK = "lock"
_YOUNG_S = 60.0


def reachable(path: Path, account: Account | None) -> bool:
    """Whether `account` may pass through every folder down to `path`; it need not own any."""
    if account is None:
        return True
    for folder in (path, *path.parents):
        mode = folder.stat()
        if mode.st_uid == account.uid:
            bit = stat.S_IXUSR
        elif mode.st_gid == account.gid:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not mode.st_mode & bit:
            return False
    return True


def short_base(account: Account | None) -> Path:
    """The temporary folder to make private ones in, with a path short enough for sockets."""
    for base in (Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp")):  # noqa: S108
        if len(os.fsencode(base)) <= _LONGEST_BASE and base.is_dir() and reachable(base, account):
            return base
    raise StartFailed("Neither /tmp nor /var/tmp can be used for sockets.")


def private(path: Path, account: Account | None = None, mode: int = 0o700) -> Path:
    """Make `path` a folder for its owner alone, which is `account` or else ourselves."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StartFailed(f"{path} is in the way: a folder is needed there.")
    wanted = os.geteuid() if account is None else account.uid
    if found.st_uid not in {os.geteuid(), wanted}:
        raise StartFailed(f"{path} belongs to another user; remove it or choose another folder.")
    if account is not None and found.st_uid != wanted:
        os.chown(path, account.uid, account.gid)
    path.chmod(mode)
    return path


def passage(path: Path, account: Account | None) -> Path:
    """A folder of ours that `account`, when it is someone else, can pass but not list."""
    return private(path, mode=0o700 if account is None else 0o711)


def claim(folder: Path) -> int | None:
    """Lock `folder` until the returned descriptor is closed, at the latest by our end.

    None when another process holds it, or swept it away while we came. The kernel drops the lock
    with the process, so nothing stale can block a later start.
    """
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:  # the lock of a file that is no longer there is no one's
            return handle
    os.close(handle)
    return None


def temporary(kind: str, account: Account | None) -> tuple[Path, int]:
    """A new locked folder `berth-<kind>-…`; those of dead processes of this kind go first."""
    base = short_base(account)
    for old in base.glob(f"berth-{kind}-*"):
        _sweep(old)
    # Between the making of the lock and the taking of it another start may sweep the folder away.
    while True:
        folder = passage(base / f"berth-{kind}-{secrets.token_hex(4)}", account)
        handle = claim(folder)
        if handle is not None:
            return folder, handle


def _sweep(old: Path) -> None:
    with contextlib.suppress(OSError):
        found = old.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return
        young = time.time() - found.st_mtime < _YOUNG_S
        if young and not (old / _LOCK).exists():  # just being made by another start
            return
        handle = claim(old)
        if handle is not None:
            shutil.rmtree(old, ignore_errors=True)
            os.close(handle)


def need_space(folder: Path, mib: int) -> None:
    """Raise StartFailed when the disk of `folder` has less than `mib` free."""
    free = shutil.disk_usage(folder).free // 2**20
    if free < mib:
        raise StartFailed(
            f"The disk of {folder} is nearly full: {free} MiB are free and {mib} MiB are needed."
        )


@contextlib.contextmanager
def plainly(folder: Path) -> Iterator[None]:
    """Turn an operating system's refusal about `folder` into one plain sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StartFailed(f"The disk of {folder} is full.") from error
        where = error.filename or folder
        reason = (error.strerror or str(error)).lower()
        raise StartFailed(f"The folder {folder} can't be used: {where}: {reason}.") from error
