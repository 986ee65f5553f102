"""One request and its answer on a connection of the library's: whole, or piece by piece.

The library's own way is made for every case: it reads heads as mail and makes a dozen objects a
request, which costs as much as all else that is done for a pod. It still makes the connections.

What must not live here: which connection, and what an answer means (client.py).
"""

import http.client
import time
from collections.abc import Iterator
from contextlib import suppress

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from urllib3.connection import HTTPConnection

_PIECE = 64 * 1024
_LONGEST_LINE = 64 * 1024
"""Bytes that may come without the end of a header or some of the body: with each piece, what there
is of a header is copied."""


class TooLarge(Exception):
    """The answer is larger than the caller takes."""


class Answer:
    """What is known of one answer so far. `status` 0 while its head is not whole."""

    def __init__(self) -> None:
        self.status = 0
        self.retry_after: str | None = None
        self.whole = False
        self.goes_on = False
        """Whether another request may follow on the connection."""
        self._framed = False
        self._unread = 0
        self._body = bytearray()  # a list of pieces would hold many times what tiny ones are
        self._parser = HttpResponseParser(self)

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def take(self) -> bytes:
        """What of the body has come since it was last asked."""
        taken = self.body
        self._body.clear()
        return taken

    def feed(self, data: bytes) -> None:
        """The next bytes; b"" for the end of the stream. Raises http.client.HTTPException for what
        is no answer, or not all of one."""
        if not data:
            if not self.status or self._framed:
                raise http.client.HTTPException("the answer ends before it is whole")
            self.whole = True  # without a length, a body ends with the connection
            return
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise http.client.HTTPException(f"{type(error).__name__}: {error}") from None
        if self._unread > _LONGEST_LINE:
            raise http.client.HTTPException("a line of the answer does not end")

    # --- called by the parser ---

    def on_header(self, name: bytes, value: bytes) -> None:
        self._unread = 0
        match name.lower():
            case b"retry-after":
                self.retry_after = value.decode("latin-1")
            case b"content-length" | b"transfer-encoding":
                self._framed = True

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._body += body

    def on_message_complete(self) -> None:
        if self.whole:
            raise http.client.HTTPException("more than one answer came to one request")
        if 100 <= self.status < 200:  # the answer itself is still to come
            self.status, self._framed = 0, False
        else:
            self.whole, self.goes_on = True, self._parser.should_keep_alive()


def exchange(
    connection: HTTPConnection,
    request: bytes,
    *,
    within_s: float,
    silence_s: float,
    largest: int,
    stream: bool = False,
) -> Answer:
    """Send the request and read its answer, which has to be whole `within_s`, without a silence of
    more than `silence_s`. With `stream`, one of 200 needs its head alone: `follow` has the rest.

    Head and body go out in one piece: each piece would wake the server. Raises TooLarge for an
    answer of more than `largest` bytes, head included, and what the transport raises.
    """
    deadline = time.monotonic() + within_s
    _send(connection, request, silence_s)
    answer, size = Answer(), 0
    while not (answer.whole or (stream and answer.status == 200)):
        data = _piece(connection, deadline, silence_s)
        size += len(data)
        if size > largest:
            raise TooLarge
        answer.feed(data)
    return answer


def follow(
    connection: HTTPConnection, answer: Answer, *, until: float, silence_s: float
) -> Iterator[bytes]:
    """The body of an answer that has begun, as it comes, to its end. It raises TimeoutError after
    a silence, and at the moment `until` of the monotonic clock however much still comes."""
    yield answer.take()
    while not answer.whole:
        answer.feed(_piece(connection, until, silence_s))
        yield answer.take()


def _send(connection: HTTPConnection, request: bytes, silence_s: float) -> None:
    if connection.sock is None:
        connection.connect()
    connection.sock.settimeout(silence_s)
    # Whoever refuses early may have answered all the same.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.sock.sendall(request)


def _piece(connection: HTTPConnection, deadline: float, silence_s: float) -> bytes:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the answer takes too long")
    connection.sock.settimeout(min(left_s, silence_s))
    return connection.sock.recv(_PIECE)
