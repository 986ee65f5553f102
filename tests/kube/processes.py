"""Start the parts of a control plane as child processes that never outlive their parent."""

import ctypes
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1

# Readiness is asked of our own children on loopback: each has a certificate of its own making.
_ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY_CERTIFICATE.check_hostname = False
_ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE
_LOOPBACK = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_ANY_CERTIFICATE)
)


class Died(Exception):
    """A part ended by itself; the message carries the end of its log."""


@dataclass(frozen=True, slots=True)
class Part:
    """One running program and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    ready_url: str

    def is_ready(self) -> bool:
        """Whether the program's own readiness check passes; Died when it no longer runs."""
        if self.process.poll() is not None:
            end = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise Died(f"{self.name} ended with {self.process.returncode}; its log ends:\n{end}")
        try:
            with _LOOPBACK.open(self.ready_url, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:  # not listening yet, or listening and not ready (HTTPError is one too)
            return False


def start(binary: Path, arguments: Sequence[str], folder: Path, ready_url: str) -> Part:
    """Start `binary` with a clean environment (no proxies, nobody's kubeconfig) in `folder`."""
    log = folder / f"{binary.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binary, *arguments],
            cwd=folder,
            env={"HOME": str(folder), "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent(),
        )
    return Part(binary.name, process, log, ready_url)


def stop(parts: Sequence[Part]) -> None:
    """Kill all parts: their state is thrown away, and an orderly end takes the server seconds."""
    for part in parts:
        part.process.kill()
    for part in parts:
        part.process.wait()


def free_port() -> int:
    """A free loopback port below the range from which the kernel gives ports to clients."""
    for _ in range(200):
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free loopback port between 20000 and 32000")


def _die_with_parent() -> Callable[[], None] | None:
    """On Linux the kernel kills the child with its parent, even when that is killed itself.

    The signal follows the *thread* that started the child, so start control planes from one that
    lives as long as they do.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask
