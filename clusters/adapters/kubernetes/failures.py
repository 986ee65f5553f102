"""Pure: an error's answer as a ClusterError. The server's own sentence is kept, bounded."""

import orjson

from clusters.port import ClusterError, Fault

LONGEST = 500
_LONGEST_WAIT_S = 3600.0
_QUOTA = ("exceeded quota: ", "status unknown for quota: ")
_FAULTS = {
    400: Fault.INVALID,
    401: Fault.UNAUTHORIZED,
    403: Fault.FORBIDDEN,
    404: Fault.NOT_FOUND,
    408: Fault.SERVER,
    409: Fault.CONFLICT,
    410: Fault.EXPIRED,
    412: Fault.CONFLICT,
    422: Fault.INVALID,
    429: Fault.THROTTLED,
}


def printable(text: str, *, longest: int = LONGEST) -> str:
    """One line that is safe to log, store and show, whoever wrote it."""
    line = " ".join(text[: longest * 2].split())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= longest else line[: longest - 3] + "..."


def failure(code: int, *, retry_after: str | None, data: bytes) -> ClusterError:
    """What an HTTP answer with an error code means; `data` should hold a Status object."""
    return status_failure(_status(data), code=code, retry_after=retry_after)


def status_failure(
    status: dict[str, object], *, code: int, retry_after: str | None = None
) -> ClusterError:
    """What a Status object means, as an answer or inside a watch."""
    fault = _FAULTS.get(code) or (Fault.SERVER if code >= 500 else Fault.MALFORMED)
    if code == 422 and _names_uid(status):
        fault = Fault.CONFLICT  # "metadata.uid: field is immutable": it is another object
    message = status.get("message")
    if code == 403 and isinstance(message, str) and any(words in message for words in _QUOTA):
        fault = Fault.QUOTA
    said = printable(message) if isinstance(message, str) and message else "no reason given"
    return ClusterError(
        fault, f"The cluster answered {code}: {said}", retry_after_s=_seconds(retry_after, status)
    )


def refuse_told_failure(answer: dict[str, object]) -> None:
    """Raises ClusterError for a Status of failure, whatever the code of the answer that it is."""
    if answer.get("kind") == "Status" and answer.get("status") == "Failure":
        code = answer.get("code")
        raise status_failure(answer, code=code if type(code) is int else 500)


def _status(data: bytes) -> dict[str, object]:
    """{} for anything else: what stands at the address may be no cluster, and is not quoted."""
    try:
        status = orjson.loads(data)
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _details(status: dict[str, object]) -> dict[str, object]:
    details = status.get("details")
    return details if isinstance(details, dict) else {}


def _names_uid(status: dict[str, object]) -> bool:
    causes = _details(status).get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes
    )


def _seconds(header: str | None, status: dict[str, object]) -> float | None:
    """The Retry-After header, else the Status's own wish; dates and nonsense count as none."""
    wish: object = header
    if header is None or not (header.isascii() and header.isdigit()):
        wish = _details(status).get("retryAfterSeconds")
    if isinstance(wish, str | int) and not isinstance(wish, bool):
        seconds = float(str(wish)[:9])
        return min(seconds, _LONGEST_WAIT_S) if seconds > 0 else None
    return None
