"""What can happen to a request, or to a line of a watch, on its way."""

import json
from collections.abc import Callable

from tests.faults.proxy import Exchange, Spoil, Told

_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


def _status(code: int) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"an injected {code}",
        "reason": _REASONS[code],
        "code": code,
    }


def answer(code: int, **headers: str) -> Spoil:
    """The server does nothing, and says so."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())

    def spoil(exchange: Exchange, line: bytes) -> None:
        kind = ("Content-Type", "application/json")
        exchange.tell(Told(code, (kind, *named), json.dumps(_status(code)).encode()))

    return spoil


def silence_before(exchange: Exchange, line: bytes) -> None:
    """It is never done, and never answered."""
    exchange.say_nothing()


def silence_after(exchange: Exchange, line: bytes) -> None:
    """It is done, and never answered."""
    exchange.ask()
    exchange.say_nothing()


def cut(exchange: Exchange, line: bytes) -> None:
    """The stream ends in the middle of the line."""
    exchange.write_piece(line[: len(line) // 2])
    exchange.hang_up()


def half_open(exchange: Exchange, line: bytes) -> None:
    """From the line on nothing is said any more, and the connection stays."""
    exchange.say_nothing()


def expired(exchange: Exchange, line: bytes) -> None:
    """In the line's place: the version is too old."""
    event = json.dumps({"type": "ERROR", "object": _status(410)})
    exchange.write_piece(event.encode() + b"\n")
    exchange.hang_up()


def stale(body: bytes) -> Spoil:
    """The list is as it was."""

    def spoil(exchange: Exchange, line: bytes) -> None:
        exchange.tell(Told(200, (("Content-Type", "application/json"),), body))

    return spoil


def meanwhile(act: Callable[[], None]) -> Spoil:
    """Something happens beside it, and then it is passed on."""

    def spoil(exchange: Exchange, line: bytes) -> None:
        act()
        exchange.write_piece(line) if line else exchange.pass_on()

    return spoil


def before_the_answer(act: Callable[[], None]) -> Spoil:
    """It is done; something happens beside it, and then it is answered."""

    def spoil(exchange: Exchange, line: bytes) -> None:
        told = exchange.ask()
        act()
        exchange.tell(told)

    return spoil
