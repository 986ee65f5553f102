"""Ports on loopback. What must not live here: any address beyond 127.0.0.1."""

import errno
import http.client
import socket

from controlplane.embedded.process import StartFailed

HOST = "127.0.0.1"
DEFAULT = 8000


def free() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def taken(port: int) -> bool:
    """Whether a server could not listen on `port`; raises StartFailed if it never could."""
    with socket.socket() as probe:
        # As servers do: connections of an earlier run that are still closing don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            reason = (error.strerror or str(error)).lower()
            raise StartFailed(f"Port {port} can't be used: {reason}.") from error
        except OverflowError as error:
            raise StartFailed(f"Port {port} does not exist; they end at 65535.") from error
    return False


def choose(wanted: int | None) -> tuple[int, str]:
    """The web port, and what to tell about it: a default gives way, one asked for does not.

    0 asks for any free one.
    """
    if wanted == 0:
        return free(), ""
    if wanted is not None:
        if taken(wanted):
            raise StartFailed(f"Port {wanted} is taken; choose another with --port.")
        return wanted, ""
    if not taken(DEFAULT):
        return DEFAULT, ""
    port = free()
    return port, f"port {DEFAULT} is taken, so Berth uses {port}"


def answers(port: int, path: str) -> bool:
    """Whether GET `path` on our `port` gives 200 within a second."""
    connection = http.client.HTTPConnection(HOST, port, timeout=1)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
